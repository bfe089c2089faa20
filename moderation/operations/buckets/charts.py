"""History charts of up to 90 days, with purges and repairs as marks: of a channel, or of the cluster's worst values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.utils.translation import gettext as _

from chatstore.domain.errors import BadInput
from chatstore.domain.health import SLOW_FROM_US, Limits
from chatstore.models import JobRun
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health.channel_health import health_limits
from chatstore.operations.health.history import KEEP_DAYS, Day, channel_days, first_day, repairs_since, worst_days
from moderation.operations.buckets.history import purge_days, purge_marks
from moderation.presentation.formats import format_milliseconds, format_number, format_size
from moderation.presentation.history_chart import Chart, DayFigures, Mark, Scale, draw_history

SPANS = (7, 30, KEEP_DAYS)
"""Days that a chart can show."""


def parse_span(text: str) -> int:
    """Return the number of days that a URL asks for; all that are kept if it asks for none. Raises `BadInput`."""
    if not text:
        return KEEP_DAYS
    for span in SPANS:
        if text == str(span):
            return span
    raise BadInput(_("A chart shows 7, 30 or 90 days. Choose one of these."))


def chart_of_channel(channel_id: int, *, days: int = KEEP_DAYS) -> Chart:
    """Return the chart of a channel's last days. Four Postgres queries."""
    now = postgres_now()
    return _draw(channel_days(channel_id, today=now.date(), days=days), channel_id, now, days)


def chart_of_worst(*, days: int = KEEP_DAYS) -> Chart:
    """Return the chart of the last days' highest values of any channel."""
    now = postgres_now()
    return _draw(worst_days(today=now.date(), days=days), None, now, days)


def _draw(measured: Sequence[Day], channel_id: int | None, now: dt.datetime, days: int) -> Chart:
    first, last = first_day(now.date(), days), now.date()
    since = dt.datetime.combine(first, dt.time(), tzinfo=dt.UTC)
    repairs = [_repair_mark(run) for run in repairs_since(since, channel_id=channel_id)]
    purges = purge_days(since=since) if channel_id is None else purge_marks(channel_id, since=since)
    marks = sorted([*purges, *repairs], key=lambda mark: mark.at)
    figures = [DayFigures(day.day, (day.tombstones, day.bytes, day.read_ms)) for day in measured]
    return draw_history(figures, marks, _scales(health_limits()), first=first, last=last)


def _scales(limits: Limits) -> list[Scale]:
    return [
        Scale(_("Tombstones, of the worst bucket"), format_number, limit=limits.warn_tombstones, is_log=True),
        Scale(_("Size of the largest bucket"), format_size, limit=limits.warn_bytes),
        Scale(_("Newest page, time to read"), format_milliseconds, limit=SLOW_FROM_US / 1000),
    ]


def _repair_mark(run: JobRun) -> Mark:
    at = run.ended_at or run.due_at
    if run.subject:
        return Mark("bucket repair", at, _("repair of one bucket, run %(id)s") % {"id": run.pk})
    return Mark("full repair", at, _("full repair, run %(id)s") % {"id": run.pk})
