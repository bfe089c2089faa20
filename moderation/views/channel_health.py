"""Channel health: all buckets of a channel, one of them in detail, and its actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from chatstore.domain.buckets import format_bucket
from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy
from chatstore.models import Channel
from chatstore.operations.health.channel_health import (
    BucketHealth,
    ChannelHealth,
    read_channel_health,
    with_repair_history,
)
from chatstore.operations.monitoring.console import runs_for_subject
from chatstore.operations.rights import MAINTAIN, READ_HEALTH
from chatstore.tasks import enqueue_run_on_commit
from moderation.operations.access.maintenance_acts import request_run
from moderation.operations.access.visibility import channel_for
from moderation.operations.buckets.actions import offers_for, run_bucket_action
from moderation.operations.buckets.charts import SPANS, chart_of_channel, parse_span
from moderation.operations.buckets.history import bucket_events
from moderation.operations.buckets.repeating import mark_past_errors
from moderation.presentation.channel_states import describe_state
from moderation.presentation.health_strip import BucketEntry, describe_legend, draw_health
from moderation.views.findings import describe_findings
from moderation.views.health_lines import bucket_lines, newest_page_lines
from moderation.views.polling import render_live
from moderation.views.session import actor_of

WORST = 8

STRIP_YEARS = (1, 3)
"""Years that the strip can be narrowed to."""

BUCKETS_A_YEAR = 37
"""Ten days each, the first of which began in the year before."""


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def channel_health(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Show all buckets of a channel or those of the last years, the worst of them, and its last 7, 30 or 90 days."""
    channel = channel_for(request.user, channel_id)
    health = read_channel_health(request.user, channel.pk)
    finding = health.decisive_finding
    years = _parse_years(request.GET.get("years", ""))
    context = _describe_channel(channel, health, years=years) | {
        "findings": describe_findings(request.user, health.findings, here=request.path),
        "worst": health.worst(WORST),
        "state": describe_state(health.state, health.known, _("See the finding below.") if finding else ""),
        "newest_page": newest_page_lines(health),
        "chart": chart_of_channel(channel.pk, days=parse_span(request.GET.get("days", ""))),
        "spans": SPANS,
        "runs": mark_past_errors(runs_for_subject(request.user, str(channel.pk))),
        "may_act": request.user.has_perm(MAINTAIN),
    }
    return render(request, "moderation/health/channel.html", context)


@require_POST
@permission_required(MAINTAIN, raise_exception=True)
def channel_probe(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Probe a channel's newest page now."""
    channel = channel_for(request.user, channel_id)
    run = request_run("probe", actor=actor_of(request), subject=str(channel.pk))
    enqueue_run_on_commit(run.pk)
    return redirect("channel_health", channel.pk)


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def bucket_health(request: HttpRequest, channel_id: int, bucket: int) -> HttpResponse:
    """Show a bucket: its metrics, the purges that affected it, and its actions."""
    channel, health, found = _find_bucket(request, channel_id, bucket)
    context = _describe_channel(channel, health, here=bucket) | _describe_live(request, health, found)
    context |= {
        "findings": describe_findings(request.user, health.findings_in(bucket), here=request.path),
        "events": bucket_events(request.user, channel.pk, bucket),
        "offers": offers_for(channel.pk, found),
        "may_act": request.user.has_perm(MAINTAIN),
    }
    return render(request, "moderation/health/bucket.html", context)


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def bucket_live(request: HttpRequest, channel_id: int, bucket: int) -> HttpResponse:
    """Return metrics and runs, for htmx to poll while a run is in progress; the page reloads after that."""
    channel, health, found = _find_bucket(request, channel_id, bucket)
    context = _describe_live(request, health, found) | {"channel": channel}
    return render_live(request, "moderation/health/_bucket_live.html", context, keep_polling=bool(context["polling"]))


@require_POST
@permission_required(MAINTAIN, raise_exception=True)
def bucket_action(request: HttpRequest, channel_id: int, bucket: int, action: str) -> HttpResponse:
    """Request an action; the page shows its progress."""
    channel = channel_for(request.user, channel_id)
    read_channel_health(request.user, channel.pk).find(bucket)
    run = run_bucket_action(action, channel.pk, bucket, actor=actor_of(request))
    enqueue_run_on_commit(run.pk)
    return redirect("bucket_health", channel.pk, bucket)


def _find_bucket(request: HttpRequest, channel_id: int, bucket: int) -> tuple[Channel, ChannelHealth, BucketHealth]:
    channel = channel_for(request.user, channel_id)
    health = read_channel_health(request.user, channel.pk)
    (found,) = with_repair_history(channel.pk, [health.find(bucket)])
    return channel, health, found


def _parse_years(text: str) -> int | None:
    """Return the number of years that a URL asks for; None for all of them."""
    if text in ("", "all"):
        return None
    for years in STRIP_YEARS:
        if text == str(years):
            return years
    raise BadInput(gettext_lazy("The strip shows 1 year, 3 years or all of them. Choose one of these."))


# --- Context of the templates ---------------------------------------------------------------


def _describe_channel(
    channel: Channel, health: ChannelHealth, *, here: int | None = None, years: int | None = None
) -> dict[str, Any]:
    shown = _newest_years(health.buckets, years)
    entries = [BucketEntry(bucket.bucket, bucket.known, bucket.state, bucket.was_written) for bucket in shown]
    return {
        "nav": "health",
        "channel": channel,
        "health": health,
        "strip": draw_health(entries, here=here),
        "legend": describe_legend(entries),
        "shown_buckets": shown,
        "years": years,
        "offered_years": [
            each for each in STRIP_YEARS if len(_newest_years(health.buckets, each)) < len(health.buckets)
        ],
    }


def _newest_years(buckets: Sequence[BucketHealth], years: int | None) -> Sequence[BucketHealth]:
    """Return the buckets of the last years before the newest one; all if years is None. buckets: oldest first."""
    if years is None or not buckets:
        return buckets
    first = buckets[-1].bucket - years * BUCKETS_A_YEAR
    return [bucket for bucket in buckets if bucket.bucket > first]


def _describe_live(request: HttpRequest, health: ChannelHealth, found: BucketHealth) -> dict[str, Any]:
    subject = format_bucket(health.channel_id, found.bucket)
    runs = runs_for_subject(request.user, subject)
    return {
        "bucket": found,
        "subject": subject,
        "lines": bucket_lines(health, found),
        "runs": mark_past_errors(runs),
        "polling": any(not run.has_ended for run in runs),
    }
