"""Django's sessions in Postgres, in a table of ours that names the account and the time of the last use.

Everything about a session is in the row that Django reads for each request anyway. Deleting the row ends the session.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from moderation.models import StaffSession

USE_NOTED_EVERY = dt.timedelta(minutes=1)


class SessionStore(DatabaseSessionStore):
    """Sessions in the table of `StaffSession`."""

    last_used_at: dt.datetime | None = None
    """As stored, once the session was loaded."""

    @classmethod
    def get_model_class(cls) -> type[StaffSession]:
        """Return the model of the table."""
        return StaffSession

    def _get_session_from_db(self) -> StaffSession | None:
        row: StaffSession | None = super()._get_session_from_db()  # type: ignore[misc]  # not in the stubs
        self.last_used_at = None if row is None else row.last_used_at
        return row

    def create_model_instance(self, data: dict[str, Any]) -> StaffSession:
        """Return the row to save: saving a session is a use of it."""
        row = cast(StaffSession, super().create_model_instance(data))
        row.account_id = data.get(SESSION_KEY)
        row.last_used_at = timezone.now()
        return row

    def note_use(self) -> None:
        """Store that the session is used, if what is stored is a minute old."""
        now = timezone.now()
        if self.session_key and self.last_used_at is not None and now - self.last_used_at >= USE_NOTED_EVERY:
            stale = self.get_model_class().objects.filter(
                session_key=self.session_key, last_used_at__lte=now - USE_NOTED_EVERY
            )
            stale.update(last_used_at=now)
            self.last_used_at = now


class RequireSignIn(LoginRequiredMiddleware):
    """Middleware that redirects to the sign-in page, and from there back to a page that can be opened."""

    def handle_no_permission(
        self, request: HttpRequest, view_func: Callable[..., HttpResponseBase]
    ) -> HttpResponseRedirect:
        """Redirect to the sign-in page. Most URLs of forms accept no GET: after them, the form's page is next."""
        if request.method in {"GET", "HEAD"}:
            return super().handle_no_permission(request, view_func)
        return redirect_to_login(_page_of_form(request), self.get_login_url(view_func))


def _page_of_form(request: HttpRequest) -> str:
    """Return the path of the page from which a form was sent, or else Home."""
    page = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure()):
        return reverse("home")
    return urlunsplit(("", "", *urlsplit(page)[2:4], ""))


class NoteUse:
    """Middleware that notes uses of sessions of signed-in accounts. Comes after Django's authentication."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if SESSION_KEY in request.session and isinstance(request.session, SessionStore):
            request.session.note_use()
        return self._get_response(request)
