"""Middleware that keeps pages out of caches."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control


class NoStore:
    """Forbids every cache to store a page: it shows messages, and what only some accounts may see.

    Static files are served before this.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        patch_cache_control(response, private=True, no_store=True)
        return response
