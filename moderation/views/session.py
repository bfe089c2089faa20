"""Sign-in and sign-out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext

from chatstore.domain.errors import Forbidden
from chatstore.models.users import User
from moderation.views.polling import request_reload


class SignIn(LoginView):
    """The sign-in page. A fragment that is requested after the session ended reloads its whole page."""

    template_name = "moderation/account/sign_in.html"
    redirect_authenticated_user = True

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the form; reload the page for htmx, which was redirected here."""
        if request.headers.get("HX-Request"):
            return request_reload(HttpResponse(status=204))
        return super().get(request, *args, **kwargs)


sign_in = SignIn.as_view()
"""Open to anyone: Django marks its own login view as needing no login."""

sign_out = LogoutView.as_view()
"""POST only, so that a link in a message cannot sign a user out."""


def too_many_attempts(
    request: HttpRequest, _response: HttpResponse, _credentials: Mapping[str, Any] | None
) -> HttpResponse:
    """Return the sign-in page for an address that has to pause. It is the same whether the account exists or not."""
    context = {"pause_minutes": settings.SIGN_IN_PAUSE_MINUTES, "next": request.POST.get("next", "")}
    page = render(request, SignIn.template_name, context, status=429)
    page.headers["Retry-After"] = str(settings.SIGN_IN_PAUSE_MINUTES * 60)
    return page


def actor_of(request: HttpRequest) -> User:
    """Return the signed-in account. Raises `Forbidden` without one, which the middleware rules out."""
    if not isinstance(request.user, User):
        raise Forbidden(gettext("Sign in first."))
    return request.user
