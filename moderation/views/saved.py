"""The notice of a page that a form was saved, after the redirect that follows it."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpResponseRedirect


def redirect_saved(path: str, *, fragment: str = "", after: int | None = None) -> HttpResponseRedirect:
    """Redirect to a page whose template includes `moderation/shared/_saved.html`.

    fragment: of what was saved. after: cursor of the page of a list that has it, None for the first.
    """
    query: dict[str, int] = {"saved": 1}
    if after is not None:
        query["after"] = after
    return HttpResponseRedirect(f"{path}?{urlencode(query)}{fragment and f'#{fragment}'}")
