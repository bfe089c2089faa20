"""The part of a page that htmx fetches again while something is at work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def render_live(request: HttpRequest, template: str, context: Mapping[str, Any], *, goes_on: bool) -> HttpResponse:
    """The fragment; once nothing goes on any more, htmx is told to load the whole page anew."""
    response = render(request, template, dict(context))
    if not goes_on:
        response["HX-Refresh"] = "true"
    return response
