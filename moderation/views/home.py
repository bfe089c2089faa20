"""Home: purges that need attention, recent activity, and search."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from chatstore.domain.buckets import bucket_at, bucket_days
from chatstore.domain.snowflakes import unix_ms
from chatstore.models import Channel
from chatstore.operations.monitoring.console import describe_stopped_services
from chatstore.operations.rights import READ_HEALTH
from moderation.operations.erasure.requests import requests_for
from moderation.operations.lookup.channels import channels_by_activity
from moderation.operations.lookup.jump import suggest
from moderation.operations.lookup.search import FoundUser, search_anything
from moderation.operations.purging.approvals import approvals_for
from moderation.operations.purging.listing import list_newest
from moderation.views.board import describe_board
from moderation.views.findings import list_findings
from moderation.views.menu import pages_titled
from moderation.views.picks import describe_rows

RECENT_PURGES = 6
FINDINGS_AT_HOME = 6


@dataclass(frozen=True, slots=True)
class PlaceView:
    """A channel in which a user posted, and the 10-day period of their last message there."""

    channel: Channel
    first_day: dt.date
    last_day: dt.date


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show the home page. Open to every signed-in account; without any permission it names who can grant them."""
    user = request.user
    # Previews of other moderators need no attention.
    purges = list_newest(user, ("running", "ready", "done"), limit=RECENT_PURGES, own=("ready",))
    context: dict[str, Any] = {
        "nav": "home",
        "may_view": user.has_perm("chatstore.view_channel"),
        "running": purges["running"],
        "approval_requests": approvals_for(user),
        "erasure_requests": requests_for(user),
        "ready": purges["ready"],
        "finished": purges["done"],
        "overview": channels_by_activity(user),
    }
    if user.has_perm(READ_HEALTH):
        findings, other_findings = list_findings(user, limit=FINDINGS_AT_HOME)
        context |= {
            "operates": True,
            "board": describe_board(user),
            "stopped_services": describe_stopped_services(),
            "findings": findings,
            "other_findings": other_findings,
        }
    return render(request, "moderation/home/home.html", context)


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def find(request: HttpRequest) -> HttpResponse:
    """Redirect to the message or the only channel found; list anything else."""
    query = request.GET.get("q", "")
    found = search_anything(request.user, query)
    if found.message is not None:
        return redirect("message", *found.message)
    if len(found.channels) == 1 and not found.users:
        return redirect("timeline", found.channels[0].pk)
    users = [(hit, _places_of(hit)) for hit in found.users]
    return render(request, "moderation/search/results.html", {"query": query, "found": found, "users_found": users})


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def jump(request: HttpRequest) -> HttpResponse:
    """Return what the text in the search box may mean, as a fragment below it."""
    query = request.GET.get("q", "").strip()
    found, pages = suggest(request.user, query), pages_titled(request, query)
    context = {"query": query, "found": found, "people": describe_rows(found.users), "pages": pages}
    return render(request, "moderation/search/_jump.html", context)


def _places_of(hit: FoundUser) -> list[PlaceView]:
    places = []
    for place in hit.recent_channels:
        start = dt.datetime.combine(place.until, dt.time(), dt.UTC)
        first, _ = bucket_days(bucket_at(unix_ms(start)))
        places.append(PlaceView(place.channel, first, place.until))
    return places
