"""After a channel's import: what lives in its buckets is counted, and the ledger told where it may be."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence

from django.conf import settings

from chatstore.domain.errors import StoreUnavailable, TooManyTombstones, WriteRefused
from chatstore.domain.live import Live
from chatstore.domain.whole_reads import live_of_bucket
from chatstore.operations.bookkeeping import SOURCE, settle_bucket
from chatstore.operations.channel_lock import holder_of
from chatstore.operations.clock import postgres_now, postgres_now_us
from chatstore.store.ledger import CACHE_SECONDS
from chatstore.store.loads import count_live_in, note_live_rows_in, read_bounds_in, set_live_in

AT_ONCE = 64
"""Buckets that are read beside each other; each is a whole partition to the servers."""


def settle_imported(channel_id: int, cleared_at: Mapping[int, float], *, renew: Callable[[], None], job: str) -> None:
    """Settle the buckets of an import that holds the channel.

    cleared_at: each bucket's last clear, by `time.monotonic()`. What the ledger is told is
    stamped ten seconds before its read and loses to a clear since; of buckets that were
    cleared later only the count is noted, and their `live` stays "not known".
    """
    if not cleared_at:
        return
    settled_before = time.monotonic() - settings.CLOCK_SKEW_SECONDS
    recent = sorted(bucket for bucket, at in cleared_at.items() if at >= settled_before)
    renew()
    settle_buckets(channel_id, sorted(cleared_at.keys() - set(recent)), job=job, renew=renew)
    renew()
    measured_at = postgres_now()
    counts = count_live_in(channel_id, recent)
    note_live_rows_in(channel_id, counts, source=SOURCE, measured_at=measured_at)


def settle_buckets(
    channel_id: int, buckets: Sequence[int], *, job: str, renew: Callable[[], None] | None = None
) -> None:
    """Settle many buckets of a channel that `job` holds, a few dozen at a time.

    As `settle_bucket` does for one: each `live` follows from one quorum read of the whole bucket.
    """
    for start in range(0, len(buckets), AT_ONCE):
        if renew is not None:
            renew()
        some = buckets[start : start + AT_ONCE]
        if holder_of(channel_id) != job:
            raise WriteRefused(f"channel {channel_id} is not held by the job that would settle its ledger")
        try:
            _settle_at_once(channel_id, some)
        except (StoreUnavailable, TooManyTombstones):
            # One by one, page by page: slower, and bearable for a server that is busy or ruined.
            for bucket in some:
                settle_bucket(channel_id, bucket, job=job)


def _settle_at_once(channel_id: int, buckets: Sequence[int]) -> None:
    began_us = postgres_now_us()
    lives: dict[int, Live] = {}
    counts: dict[int, int] = {}
    for bucket, (lowest, highest, rows, authored) in read_bounds_in(channel_id, buckets).items():
        lives[bucket] = live_of_bucket(bucket, lowest, highest, rows, began_us=began_us)
        counts[bucket] = authored
    set_live_in(channel_id, lives, read_began_us=began_us)
    measured_at = dt.datetime.fromtimestamp(began_us / 1e6, tz=dt.UTC)
    note_live_rows_in(channel_id, counts, source=SOURCE, measured_at=measured_at)


def wait_for_pages(last_clear: float | None) -> None:
    """Wait until no page uses ledger rows from before the last clear (`time.monotonic()`)."""
    if last_clear is not None:
        time.sleep(max(0.0, last_clear + CACHE_SECONDS - time.monotonic()))
