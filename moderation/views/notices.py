"""The notices of an open page, which htmx fetches again."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from moderation.forms import read_cursor
from moderation.templatetags.notices import SHOWN_BY_PAGES


# Each notice is for those who have the right to act on it: without any right there are none.
@require_safe
def notices(request: HttpRequest) -> HttpResponse:
    """Return the notices, without what the page shows itself: the IDs in the query."""
    shown = {name: read_cursor(request.GET, name) for name in SHOWN_BY_PAGES}
    return render(request, "moderation/shared/_notices.html", shown)
