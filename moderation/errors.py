"""Turns the project's own errors into pages: what went wrong, in words, with its status."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.defaults import permission_denied

from chatstore.domain.errors import BadInput, ChatstoreError, Forbidden, NotFound, StoreUnavailable

logger = logging.getLogger(__name__)

# The first class that fits decides: NotFound is a BadInput too.
_PAGES: tuple[tuple[type[ChatstoreError], int, str], ...] = (
    (NotFound, 404, "Nothing here"),
    (BadInput, 400, "That can't be used"),
    (Forbidden, 403, "Not for this account"),
    (StoreUnavailable, 503, "The store does not answer"),
)

RETRY_AFTER_SECONDS = 10
"""A node that was restarted answers quorum reads 7 s later."""


class ErrorPages:
    """Middleware: a `ChatstoreError` or a `PermissionDenied` that a view let through becomes a page with its words."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_view(self, request: HttpRequest, *_view: Any) -> HttpResponse | None:
        """Refuse a NUL on its way to the admin, which hands most values to Postgres unchecked; it stores none."""
        if request.resolver_match is None or request.resolver_match.app_name != "admin":
            return None
        values = (value for typed in (request.GET, request.POST) for _, listed in typed.lists() for value in listed)
        if any("\0" in str(value) for value in values):
            words = "A value in the address or in the form holds a null character."
            return show_error(request, status=400, title="That can't be used", words=words)
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase | None:
        """The page of an error of ours; None lets Django go on with anything else."""
        if isinstance(error, PermissionDenied):
            # Left to Django, a traceback would be logged with it, and a refusal is no fault.
            return permission_denied(request, error)
        for kind, status, title in _PAGES:
            if isinstance(error, kind):
                return show_error(request, status=status, title=title, words=str(error))
        return None


def show_error(request: HttpRequest, *, status: int, title: str, words: str) -> HttpResponse:
    """The error page, or for htmx the fragment that says the same."""
    if status >= 500:
        logger.warning("%s %s answered %s: %s", request.method, request.path, status, words)
    template = "_error.html" if request.headers.get("HX-Request") else "error.html"
    context = {"status": status, "title": title, "words": words}
    response = render(request, template, context, status=status)
    if status == 503:
        response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response
