"""Daily measurements of channels, kept for 90 days, and the repairs in that time.

A day has the figures that the channel's page had at the day's last measurement, also those of buckets that were not
measured then. So the last day of a chart says what the page says.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Q, QuerySet

from chatstore.domain.runs import BUCKET_REPAIR, RunState
from chatstore.models import ChannelDay, JobRun
from chatstore.operations.health.channel_health import STALE_AFTER, tombstones_in
from chatstore.operations.ledger.summaries import mark_due
from chatstore.store import figures
from chatstore.store.figures import Figure

KEEP_DAYS = 90

# A maximum by an index reads one row, while grouping would read all channels of all days.
_WORST_DAYS = """
SELECT day::date,
    (SELECT max(tombstones) FROM chatstore_channelday WHERE day = days.day),
    (SELECT max(bytes) FROM chatstore_channelday WHERE day = days.day),
    (SELECT max(read_ms) FROM chatstore_channelday WHERE day = days.day)
FROM (SELECT generate_series(%s::date, %s::date, '1 day')::date) AS days (day) ORDER BY day
"""


@dataclass(frozen=True, slots=True)
class Day:
    """Measurements of one day (UTC); None: not measured. tombstones, bytes: the maximum of any bucket."""

    day: dt.date
    tombstones: int | None = None
    bytes: int | None = None
    read_ms: float | None = None


def note_day(channel_id: int, *, now: dt.datetime, read_ms: float | None) -> None:
    """Record the day's figures of a channel; those that were not measured in the last 26 hours are left unchanged.

    read_ms: duration of reading the newest page; None if it could not be read.
    """
    measured = _values_of(figures.read_figures(channel_id).values(), now) | {"read_ms": read_ms}
    ChannelDay.objects.update_or_create(
        channel_id=channel_id,
        day=_day_of(now),
        defaults={name: value for name, value in measured.items() if value is not None},
    )
    mark_due([channel_id])


def note_days(measured: Mapping[int, Collection[Mapping[str, Figure]]], *, now: dt.datetime) -> None:
    """Record the day's figures of channels, as `note_day` does, without the newest page. measured: of their buckets."""
    rows: dict[str, list[ChannelDay]] = defaultdict(list)
    for channel_id, found in sorted(measured.items()):
        for name, value in _values_of(found, now).items():
            if value is not None:
                rows[name].append(ChannelDay(channel_id=channel_id, day=_day_of(now), **{name: value}))
    for name, days in rows.items():
        ChannelDay.objects.bulk_create(
            days, update_conflicts=True, unique_fields=["channel_id", "day"], update_fields=[name]
        )


def _values_of(found: Collection[Mapping[str, Figure]], now: dt.datetime) -> dict[str, float | None]:
    """Return the figures of a day, from those of a channel's buckets; None: not measured in the last 26 hours."""
    live = [one["live_rows"].value for one in found if "live_rows" in one]
    return {
        "tombstones": _most(map(tombstones_in, found), since=now - STALE_AFTER),
        "bytes": _most((one.get("bytes") for one in found), since=now - STALE_AFTER),
        "live_rows": sum(live) if live else None,
    }


def _most(measured: Iterable[Figure | None], *, since: dt.datetime) -> int | None:
    """Return the highest value, also an older one; None unless one of them was measured since then."""
    known = [one for one in measured if one is not None]
    return max(one.value for one in known) if any(one.measured_at >= since for one in known) else None


def _day_of(time: dt.datetime) -> dt.date:
    return time.astimezone(dt.UTC).date()


def channel_days(channel_id: int, *, today: dt.date, days: int = KEEP_DAYS) -> list[Day]:
    """Return those of the last `days` days on which a channel was measured, oldest first."""
    rows = _days(today, days).filter(channel_id=channel_id).order_by("day")
    return [Day(row.day, row.tombstones, row.bytes, row.read_ms) for row in rows]


def worst_days(*, today: dt.date, days: int = KEEP_DAYS) -> list[Day]:
    """Return the maximum over all channels for each of the last `days` days with a measurement, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(_WORST_DAYS, [first_day(today, days), today])
        found = [Day(*row) for row in cursor.fetchall()]
    return [one for one in found if one != Day(one.day)]


def repairs_since(since: dt.datetime, *, channel_id: int | None = None) -> Sequence[JobRun]:
    """Return completed repairs of all tables, and of single buckets of a channel, oldest first."""
    which = Q(job="repair")
    if channel_id is not None:
        which |= Q(job=BUCKET_REPAIR, subject__startswith=f"{channel_id}:")
    done = JobRun.objects.filter(which, state=RunState.DONE, started_at__gte=since)
    return list(done.order_by("started_at"))


def delete_old_days(today: dt.date) -> int:
    """Delete days older than 90 days; return the number of rows."""
    gone, _ = ChannelDay.objects.filter(day__lte=today - dt.timedelta(days=KEEP_DAYS)).delete()
    return gone


def first_day(today: dt.date, days: int = KEEP_DAYS) -> dt.date:
    """Return the first of the last `days` days. Without `days`: the oldest day that is kept."""
    return today - dt.timedelta(days=days - 1)


def _days(today: dt.date, days: int) -> QuerySet[ChannelDay]:
    return ChannelDay.objects.filter(day__gte=first_day(today, days), day__lte=today)
