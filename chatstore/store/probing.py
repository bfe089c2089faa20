"""Cost of a page of one bucket: timed as a reader's request, then traced on every replica."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass

from chatstore.domain.errors import TooManyTombstones
from chatstore.domain.slices import Slice
from chatstore.store import cassandra, traces
from chatstore.store.reading.search import SELECT_DOWN

MAX_READS = 3
"""Number of reads, of which the fastest counts, since other load on the machine only adds time."""

QUICK_MS = 10.0
"""A read this fast is not repeated."""


@dataclass(frozen=True, slots=True)
class BucketPage:
    """The newest page of a bucket. tombstones: the most that any replica scanned for it.

    milliseconds, tombstones: None if Cassandra aborted the read because of tombstones.
    """

    rows: int
    milliseconds: float | None
    tombstones: int | None
    measured_at: dt.datetime


def read_bucket_page(channel_id: int, part: Slice, *, limit: int) -> BucketPage:
    """Read the newest `limit` rows of a slice. Raises `StoreUnavailable`, also if a replica is down."""
    measured_at = dt.datetime.now(dt.UTC)
    params = (channel_id, part.bucket, part.low, part.high, limit)
    try:
        milliseconds = _time_read(params)
        traced = traces.execute_traced(SELECT_DOWN, params, consistency=cassandra.ALL)
    except TooManyTombstones:
        return BucketPage(0, None, None, measured_at)
    return BucketPage(len(traced.rows), milliseconds, traced.tombstones, measured_at)


def _time_read(params: cassandra.Params) -> float:
    quickest = float("inf")
    for _ in range(MAX_READS):
        began = time.monotonic()
        cassandra.execute(SELECT_DOWN, params)
        quickest = min(quickest, (time.monotonic() - began) * 1000)
        if quickest <= QUICK_MS:
            break
    return quickest
