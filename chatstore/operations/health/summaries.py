"""Rows of the table of all channels, copied from the ledger and the figures where they have changed.

Rows are marked as due by whatever measures a channel (`chatstore.operations.ledger.summaries`). The monitor, of which
one runs at a time, refreshes those that have waited longest. The health page of a channel computes the same figures by
the same functions.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Collection

from django.db import connection, transaction

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.health import KnownChannel, state_of_channel
from chatstore.models import ChannelSummary
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.channels import store_states
from chatstore.operations.health.channel_health import (
    NEWEST_PAGE_US,
    ChannelHealth,
    describe_channel,
    health_limits,
)
from chatstore.operations.health.history import note_days
from chatstore.operations.ledger.summaries import count_uncovered, mark_due
from chatstore.operations.repair_status.repair_clock import (
    CHECK_INTERVAL_MINUTES,
    MESSAGES,
    covered_until,
    read_clock,
)
from chatstore.store import figures, ledger
from chatstore.store.figures import Figure

CHANNELS_PER_BATCH = 100
"""Channels whose ledger and figures are read concurrently."""

REFRESH_SECONDS = 5.0
"""Time for refreshing in each round of the monitor; other checks wait for it. What is left follows in the next."""

ROWS_PER_CHECK = 1_000
"""Rows whose states are compared, and locked, at a time."""

_CLAIM = (
    f"UPDATE {ChannelSummary._meta.db_table} SET due_at = clock_timestamp() + interval '5 minutes' "
    f"WHERE channel_id IN (SELECT channel_id FROM {ChannelSummary._meta.db_table} "
    "WHERE due_at <= clock_timestamp() ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING channel_id"
)

_COPIED = (
    "figure_state", "tombstones", "tombstones_bucket", "tombstones_at", "bytes", "bytes_bucket", "bytes_at", "page_us",
    "page_rows", "page_tombstones", "page_buckets", "page_at", "buckets", "empty_buckets", "empty_share",
    "refreshed_at",
)  # fmt: skip
"""Columns that a refresh writes."""


def refresh_due_summaries(now: dt.datetime) -> None:
    """Monitor check: refresh rows that are due, for `REFRESH_SECONDS` at most. Raises `StoreUnavailable`."""
    ends_at = time.monotonic() + REFRESH_SECONDS
    refreshed: list[int] = []
    while time.monotonic() < ends_at and (due := _claim_due(CHANNELS_PER_BATCH)):
        try:
            refresh_summaries(due)
        except StoreUnavailable:
            mark_due(due)
            raise
        # What has been measured meanwhile is due since then.
        ChannelSummary.objects.filter(pk__in=due, due_at__gt=ClockTimestamp()).update(due_at=None)
        refreshed += due
    if refreshed:
        # A purge marks the channels in which it deleted.
        count_uncovered(_repaired_until(now), channel_ids=refreshed)


def count_uncovered_deletes(now: dt.datetime) -> None:
    """Monitor check: count the deletes that no repair covers, as often as repairs are checked.

    Raises `StoreUnavailable`.
    """
    if now.minute % CHECK_INTERVAL_MINUTES == 0:
        count_uncovered(_repaired_until(now))


def _repaired_until(now: dt.datetime) -> dt.datetime | None:
    """Return the time up to which all deletes are covered by a repair; None: there was none."""
    began_at = read_clock(MESSAGES, now).began_at
    return None if began_at is None else covered_until(began_at)


def refresh_summaries(channel_ids: Collection[int]) -> None:
    """Copy the figures of channels that have a row, also to today's row of their history. Raises `StoreUnavailable`."""
    ids = sorted(channel_ids)
    now = postgres_now()
    measured: dict[int, dict[int, dict[str, Figure]]] = defaultdict(dict)
    for (channel_id, bucket), found in figures.read_figures_in(ids).items():
        measured[channel_id][bucket] = found
    rows = [
        _summarize(describe_channel(channel_id, dict(lives), measured[channel_id], now=now))
        for channel_id, lives in ledger.read_ledgers(ids)
    ]
    ChannelSummary.objects.bulk_create(rows, update_conflicts=True, unique_fields=["channel"], update_fields=_COPIED)
    note_days({channel_id: found.values() for channel_id, found in measured.items()}, now=now)


def refresh_states() -> None:
    """Compute all states again, in case the limits in the settings or the rows of findings were changed by hand."""
    last: int | None = 0
    while last is not None:
        with transaction.atomic():
            last = _refresh_states_after(last)


def _refresh_states_after(channel_id: int) -> int | None:
    """Compute the states of the rows that follow a channel; return the last of them, or None."""
    limits, changed = health_limits(), []
    following = ChannelSummary.objects.select_for_update().filter(pk__gt=channel_id).order_by("pk")
    rows = list(following[:ROWS_PER_CHECK])
    for row in rows:
        state = state_of_channel(known_of(row), limits)
        if row.figure_state != state:
            row.figure_state = state
            changed.append(row)
    ChannelSummary.objects.bulk_update(changed, ["figure_state"])
    store_states([row.pk for row in rows])
    return rows[-1].pk if rows else None


def known_of(row: ChannelSummary) -> KnownChannel:
    """Return the figures of a row."""
    return KnownChannel(
        tombstones=row.tombstones,
        tombstones_bucket=row.tombstones_bucket,
        bytes=row.bytes,
        bytes_bucket=row.bytes_bucket,
        page_us=row.page_us,
        page_rows=row.page_rows,
        page_tombstones=row.page_tombstones,
        page_buckets=row.page_buckets,
        buckets=row.buckets,
        empty_buckets=row.empty_buckets,
    )


def _claim_due(limit: int) -> list[int]:
    """Return the channels that are due. They are due again from the next measurement on, or if this process dies."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [limit])
        return [channel_id for (channel_id,) in cursor.fetchall()]


def _summarize(health: ChannelHealth) -> ChannelSummary:
    known = health.known
    worst, largest = health.worst_bucket, health.largest_bucket
    page = health.newest_page.get(NEWEST_PAGE_US)
    tombstones = None if worst is None else worst.tombstones_figure
    return ChannelSummary(
        channel_id=health.channel_id,
        figure_state=health.figure_state,
        tombstones=known.tombstones,
        tombstones_bucket=known.tombstones_bucket,
        tombstones_at=None if tombstones is None else tombstones.measured_at,
        bytes=known.bytes,
        bytes_bucket=known.bytes_bucket,
        bytes_at=None if largest is None else largest.figures["bytes"].measured_at,
        page_us=known.page_us,
        page_rows=known.page_rows,
        page_tombstones=known.page_tombstones,
        page_buckets=known.page_buckets,
        page_at=None if page is None else page.measured_at,
        buckets=known.buckets,
        empty_buckets=known.empty_buckets,
        empty_share=known.empty_share,
        refreshed_at=health.now,
    )
