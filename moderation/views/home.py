"""Home: what needs me now, and the one box that goes anywhere."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from chatstore.operations.monitoring.console import say_silence
from chatstore.operations.rights import READ_HEALTH
from moderation.operations.erasure.requests import requests_for
from moderation.operations.lookup.channels import channels_by_activity
from moderation.operations.lookup.search import search_anything
from moderation.operations.purging.listing import list_purges
from moderation.views.findings import list_findings

RECENT_PURGES = 6
FINDINGS_AT_HOME = 6


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Open to every signed-in account: one without rights is told so here, and by whom to ask."""
    user = request.user
    context: dict[str, Any] = {
        "nav": "home",
        "may_view": user.has_perm("chatstore.view_channel"),
        "running": list_purges(user, state="running", limit=RECENT_PURGES).purges,
        "erase_wishes": requests_for(user),
        "ready": list_purges(user, state="ready", limit=RECENT_PURGES).purges,
        "finished": list_purges(user, state="done", limit=RECENT_PURGES).purges,
        "overview": channels_by_activity(user),
    }
    if user.has_perm(READ_HEALTH):
        findings = list_findings(user)
        context |= {
            "operates": True,
            "silence": say_silence(),
            "findings": findings[:FINDINGS_AT_HOME],
            "other_findings": len(findings[FINDINGS_AT_HOME:]),
        }
    return render(request, "home.html", context)


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def find(request: HttpRequest) -> HttpResponse:
    """A message goes straight to its place; a single channel too; anything else is listed."""
    query = request.GET.get("q", "")
    found = search_anything(request.user, query)
    if found.message is not None:
        return redirect("message", *found.message)
    if len(found.channels) == 1 and not found.users:
        return redirect("timeline", found.channels[0].pk)
    return render(request, "find.html", {"query": query, "found": found})
