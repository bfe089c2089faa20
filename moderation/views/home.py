"""Home: purges that need attention or are in progress, recent activity, and search."""

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
from moderation.domain.state_labels import AWAITING_APPROVAL
from moderation.domain.states import ACTIVE_PURGES, PurgeState
from moderation.operations.access.visibility import Actor
from moderation.operations.lookup.channels import channels_by_activity, posts_of
from moderation.operations.lookup.jump import suggest
from moderation.operations.lookup.search import FoundUser, search_anything
from moderation.operations.purging.approvals import own_requests
from moderation.operations.purging.listing import newest_in_progress, newest_purges
from moderation.operations.purging.wait_reasons import WAITING_STATES
from moderation.operations.selection.summary import describe_purges
from moderation.views.attention import list_attention
from moderation.views.board import describe_board
from moderation.views.findings import list_findings
from moderation.views.menu import pages_titled
from moderation.views.picks import describe_rows

RECENT_PURGES = 6
FINDINGS_AT_HOME = 6

_RUNNING = ACTIVE_PURGES - {PurgeState.PAUSED} | {PurgeState.SCANNING}
"""Purges that go on without a person."""

_DONE = frozenset({PurgeState.DONE, PurgeState.DONE_WITH_FAILURES, PurgeState.UNDO_EXPIRED})
"""Purges that ended, and of which nothing was restored."""


@dataclass(frozen=True, slots=True)
class PlaceView:
    """A channel in which a user posted, and the 10-day period of their last message there."""

    channel: Channel
    first_day: dt.date
    last_day: dt.date


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show the home page. Open to every signed-in account; without any permission it names who can grant them."""
    user, overview = request.user, channels_by_activity(request.user)
    context: dict[str, Any] = {
        "nav": "home",
        "may_view": user.has_perm("chatstore.view_channel"),
        **_list_purges(user),
        "overview": overview,
        # Of a store that has just not answered, no purge has read or deleted anything either.
        "waiting_states": WAITING_STATES if overview.error else (),
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


def _list_purges(user: Actor) -> dict[str, Any]:
    """Return the purges that Home lists, all of them described together."""
    attention, (running, finished) = list_attention(
        user,
        newest_in_progress(user, _RUNNING, limit=RECENT_PURGES),
        newest_purges(user, _DONE, limit=RECENT_PURGES),
    )
    in_progress = sorted([*running, *attention.waits_for_others], key=lambda listed: listed.purge.pk, reverse=True)
    own = [listed for listed in in_progress if listed.purge.moderator_id == user.pk]
    awaiting = [listed.purge.pk for listed in own if listed.shown_state == AWAITING_APPROVAL]
    requests = own_requests(user, awaiting) if awaiting else {}
    return {
        **attention.as_context(),
        "in_progress": [(listed, requests.get(listed.purge.pk)) for listed in in_progress],
        "finished": [listed for listed in finished if listed not in attention.stopped],
    }


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def find(request: HttpRequest) -> HttpResponse:
    """Redirect to the message, the purge or the channel that alone is found; list anything else."""
    query = request.GET.get("q", "")
    found = search_anything(request.user, query)
    if found.message is not None:
        return redirect("message", *found.message)
    if found.purge_id is not None:
        return redirect("purge", found.purge_id)
    if found.only_channel is not None:
        return redirect("timeline", found.only_channel.pk)
    context = {
        "query": query,
        "found": found,
        "users_found": [(hit, _places_of(hit)) for hit in found.users],
        "purges_found": describe_purges(request.user, found.purges),
    }
    return render(request, "moderation/search/results.html", context)


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def jump(request: HttpRequest) -> HttpResponse:
    """Return what the text in the search box may mean, as a fragment below it."""
    query = request.GET.get("q", "").strip()
    found, pages = suggest(request.user, query), pages_titled(request, query)
    posts = posts_of([channel.pk for channel in found.channels])
    context = {
        "query": query,
        "found": found,
        "channels": [(channel, sum(posts.get(channel.pk, ()))) for channel in found.channels],
        "people": describe_rows(found.users),
        "pages": pages,
    }
    return render(request, "moderation/search/_jump.html", context)


def _places_of(hit: FoundUser) -> list[PlaceView]:
    places = []
    for place in hit.recent_channels:
        start = dt.datetime.combine(place.until, dt.time(), dt.UTC)
        first, _ = bucket_days(bucket_at(unix_ms(start)))
        if hit.made_at is not None and first < hit.made_at.date() <= place.until:
            first = hit.made_at.date()
        places.append(PlaceView(place.channel, first, place.until))
    return places
