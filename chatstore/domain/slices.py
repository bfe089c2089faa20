"""Slices: intervals of ids that a page reads from its buckets, and how many to read at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatstore.domain.buckets import bucket_ids
from chatstore.domain.live import UNKNOWN, Live

MAX_CONCURRENT_SLICES = 32
"""Buckets read concurrently: a window of statements, more is not faster."""

WAVE_GROWTH = 4
"""Growth of waves over buckets without a known count: 1, 4, 16, 32."""


@dataclass(frozen=True, slots=True)
class Slice:
    """An interval of ids in one bucket, both ends inclusive, that may contain messages.

    expected: the estimated number of live messages, from the ledger; None if unknown.
    """

    bucket: int
    low: int
    high: int
    expected: int | None = None

    def halves(self) -> tuple[Slice, Slice]:
        """Return the lower and the upper half; only for intervals of two ids or more."""
        middle = self.low + (self.high - self.low) // 2
        return Slice(self.bucket, self.low, middle), Slice(self.bucket, middle + 1, self.high)

    def pieces(self, width: int) -> list[Slice]:
        """Return slices of at most `width` ids, ascending; the slice itself if it is no wider."""
        if self.high - self.low < width:
            return [self]
        starts = range(self.low, self.high + 1, width)
        return [Slice(self.bucket, start, min(start + width - 1, self.high)) for start in starts]


def cut_slices(rows: Iterable[tuple[int, Live]], *, low: int, high: int) -> list[Slice]:
    """Return the parts of the ids `low` to `high` that may be live, one slice per ledger row, in the rows' order."""
    slices = []
    for bucket, live in rows:
        first, last = bucket_ids(bucket)
        span = live.clip(max(first, low), min(last, high))
        if span is not None:
            slices.append(Slice(bucket, *span, _expect(live, *span)))
    return slices


def _expect(live: Live, low: int, high: int) -> int | None:
    if live.count is None or live.first is None or live.last is None:
        return None
    return live.count * (high - low + 1) // (live.last - live.first + 1)


def fill_gaps(rows: Sequence[tuple[int, Live]], *, oldest: int, newest: int) -> list[tuple[int, Live]]:
    """Return ledger rows, newest first, with an unknown row added for every bucket from `oldest` to `newest` that has
    none: for tables that other programs write to as well.
    """
    known = dict(rows)
    buckets = sorted(known.keys() | set(range(oldest, newest + 1)), reverse=True)
    return [(bucket, known.get(bucket, UNKNOWN)) for bucket in buckets]


def size_wave(expected: Sequence[int | None], *, need: int, guess: int, max_unknown: int) -> int:
    """Return how many slices to read next: just enough to yield `need` rows.

    guess: rows to expect from a slice without a known count, of which at most `max_unknown` are read. The result is
    at least one and at most `MAX_CONCURRENT_SLICES`.
    """
    total = unknown = 0
    for size, rows in enumerate(expected[:MAX_CONCURRENT_SLICES], start=1):
        if rows is None:
            unknown += 1
            if unknown > max_unknown:
                return size - 1
        total += guess if rows is None else rows
        if total >= need:
            return size
    return min(len(expected), MAX_CONCURRENT_SLICES)
