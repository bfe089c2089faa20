"""Middleware that turns the project's errors into pages with their status and message."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from chatstore.domain.errors import BadInput, ChatstoreError, Forbidden, NotFound, StoreUnavailable

logger = logging.getLogger(__name__)

# The first matching class decides: NotFound is a BadInput too.
_PAGES: tuple[tuple[type[ChatstoreError], int, str | Promise], ...] = (
    (NotFound, 404, gettext_lazy("Not found")),
    (BadInput, 400, gettext_lazy("Invalid request")),
    (Forbidden, 403, gettext_lazy("Permission denied")),
    (StoreUnavailable, 503, gettext_lazy("The message store is unavailable")),
)

RETRY_AFTER_SECONDS = 10
"""A restarted node answers quorum reads after 7 s."""


class ErrorPages:
    """Renders a `ChatstoreError` or a `PermissionDenied` that a view raised as a page with its message."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_view(self, request: HttpRequest, *_view: Any) -> HttpResponse | None:
        """Reject NUL characters sent to the admin: it passes most values to Postgres unchecked, which rejects them."""
        if request.resolver_match is None or request.resolver_match.app_name != "admin":
            return None
        values = (value for typed in (request.GET, request.POST) for _, listed in typed.lists() for value in listed)
        if any("\0" in str(value) for value in values):
            message = gettext("A value in the URL or in the form contains a null character.")
            return show_error(request, status=400, title=gettext("Invalid request"), message=message)
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase | None:
        """Return the page for one of our errors; None leaves any other to Django."""
        if isinstance(error, PermissionDenied):
            # Django would log it with a traceback, although a refusal is not a fault.
            return permission_denied(request, exception=error)
        for kind, status, title in _PAGES:
            if isinstance(error, kind):
                return show_error(request, status=status, title=title, message=error.text)
        return None


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django names it.
    """Render the page for a URL that leads nowhere. What the account may not see looks the same."""
    message = gettext("This page does not exist, or your account cannot open it.")
    return show_error(request, status=404, title=gettext("Not found"), message=message)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django names it.
    """Render the page for a view that the account has no permission for."""
    message = gettext("Your account does not have permission to open this page. Ask an administrator for access.")
    return show_error(request, status=403, title=gettext("Permission denied"), message=message)


def show_error(request: HttpRequest, *, status: int, title: str | Promise, message: str) -> HttpResponse:
    """Render the error page, or for htmx its fragment. People who are signed in keep the menus."""
    if status >= 500:
        logger.warning("%s %s answered %s: %s", request.method, request.path, status, message)
    if request.headers.get("HX-Request"):
        template = "_error.html"
    elif status < 500 and not (hasattr(request, "user") and request.user.is_authenticated):
        # An error from a middleware above the one that reads the session has no account either.
        template = "error_signed_out.html"
    else:
        template = "error.html"
    context = {"status": status, "title": title, "message": message}
    response = render(request, f"moderation/shared/{template}", context, status=status)
    if status == 503:
        response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response
