"""Fragments of a page that htmx polls while work is in progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def render_live(request: HttpRequest, template: str, context: Mapping[str, Any], *, keep_polling: bool) -> HttpResponse:
    """Render the fragment. keep_polling: if false, the script reloads the page instead."""
    response = render(request, template, dict(context))
    return response if keep_polling else request_reload(response)


def request_reload(response: HttpResponse) -> HttpResponse:
    """Mark the response so that `app.js` stops all polling and reloads the page.

    htmx's own `HX-Refresh` keeps polling meanwhile: on a slow server each response restarts the reload, endlessly.
    """
    response["HX-Trigger"] = "reloadPage"
    return response
