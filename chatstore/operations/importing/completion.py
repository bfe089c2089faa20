"""Ledger refresh after an import: count the live rows of its buckets and store the result."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence

from chatstore.domain.buckets import BucketKey
from chatstore.domain.errors import StoreUnavailable, TooManyTombstones
from chatstore.domain.live import Live
from chatstore.domain.whole_reads import live_of_bucket
from chatstore.operations.coordination.clock import stamp_now_us
from chatstore.operations.ledger.refresh import SOURCE, refresh_bucket
from chatstore.operations.ledger.summaries import mark_due
from chatstore.store.ledger import CACHE_SECONDS
from chatstore.store.loads import CONCURRENT_WHOLE_READS, note_live_rows_in, read_bounds_in, set_live_in

BUCKETS_PER_BATCH = 256
"""Buckets that are refreshed per batch; the lease is checked for each."""


def refresh_buckets(
    keys: Sequence[BucketKey], *, job: str, check: Callable[[], None], window: int = CONCURRENT_WHOLE_READS
) -> None:
    """Refresh buckets of channels that `job` has locked; `check` renews the lock, and raises if it was lost.

    Like `refresh_bucket`: each `live` is derived from one quorum read of the whole bucket.
    window: number of concurrent reads. Raises `WriteRefused` if a clock is off.
    """
    for start in range(0, len(keys), BUCKETS_PER_BATCH):
        some = keys[start : start + BUCKETS_PER_BATCH]
        try:
            _refresh_batch(some, window, check)
        except (StoreUnavailable, TooManyTombstones):
            # Bucket by bucket and page by page: slower, but bearable for a busy server or a bucket full of tombstones.
            for channel_id, bucket in some:
                check()
                refresh_bucket(channel_id, bucket, job=job)


def _refresh_batch(keys: Sequence[BucketKey], window: int, check: Callable[[], None]) -> None:
    began_us = stamp_now_us()
    check()
    lives: dict[BucketKey, Live] = {}
    counts: dict[BucketKey, int] = {}
    for key, (lowest, highest, rows, authored) in read_bounds_in(keys, window=window).items():
        lives[key] = live_of_bucket(key[1], lowest, highest, rows, began_us=began_us)
        counts[key] = authored
    set_live_in(lives, read_began_us=began_us)
    measured_at = dt.datetime.fromtimestamp(began_us / 1e6, tz=dt.UTC)
    note_live_rows_in(counts, source=SOURCE, measured_at=measured_at)
    mark_due({channel_id for channel_id, _ in keys})


def wait_for_pages(last_clear: float | None) -> None:
    """Wait until no page uses ledger rows from before the last clear (`time.monotonic()`)."""
    if last_clear is not None:
        time.sleep(max(0.0, last_clear + CACHE_SECONDS - time.monotonic()))
