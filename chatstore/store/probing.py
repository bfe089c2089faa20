"""What a page of one bucket costs: timed as a reader asks for it, then traced at every replica."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass

from chatstore.domain.errors import TooManyTombstones
from chatstore.domain.slices import Slice
from chatstore.store import cassandra, traces
from chatstore.store.reading.search import SELECT_DOWN

TRIES = 3
"""Reads of which the quickest counts: what else the machine does only ever adds."""

QUICK_MS = 10.0
"""A read as quick as that is not timed again."""


@dataclass(frozen=True, slots=True)
class BucketPage:
    """The newest page of a bucket. tombstones: the most that any replica scanned for it.

    milliseconds, tombstones: None when the read failed on tombstones, which is `is_aborted`.
    """

    rows: int
    milliseconds: float | None
    tombstones: int | None
    measured_at: dt.datetime

    @property
    def is_aborted(self) -> bool:
        """Whether Cassandra gave the read up."""
        return self.milliseconds is None


def read_bucket_page(channel_id: int, part: Slice, *, limit: int) -> BucketPage:
    """Reads the newest `limit` rows of a slice. Raises `StoreUnavailable`, also while a replica is away."""
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
    for _ in range(TRIES):
        began = time.monotonic()
        cassandra.execute(SELECT_DOWN, params)
        quickest = min(quickest, (time.monotonic() - began) * 1000)
        if quickest <= QUICK_MS:
            break
    return quickest
