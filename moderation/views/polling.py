"""The part of a page that htmx fetches again while something is at work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def render_live(request: HttpRequest, template: str, context: Mapping[str, Any], *, goes_on: bool) -> HttpResponse:
    """The fragment; once nothing goes on any more, the script is told to load the whole page anew."""
    response = render(request, template, dict(context))
    return response if goes_on else ask_reload(response)


def ask_reload(response: HttpResponse) -> HttpResponse:
    """The response, at which `app.js` ends all polls and loads the page anew.

    htmx's own `HX-Refresh` goes on polling meanwhile: on a slow server each answer began the reload again, for ever.
    """
    response["HX-Trigger"] = "reloadPage"
    return response
