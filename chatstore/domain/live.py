"""Live bounds: whether a bucket contains live messages, and between which ids.

Stored as `bucket_ledger.live`, a frozen tuple `(from, to, how many)`:

    (a, b, n)             sealed when it was read: n messages, the lowest a, the highest b
    (a, null, null)       no live messages below a; anything above it
    (1, 0, 0)             no live messages
    (null, null, null)    unknown: read the whole bucket
"""

from __future__ import annotations

from dataclasses import dataclass

LiveTuple = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class Live:
    """Bounds of a bucket's live messages, both inclusive; None means unknown."""

    first: int | None = None
    last: int | None = None
    count: int | None = None

    @property
    def is_known(self) -> bool:
        """Return whether a full read of the sealed bucket measured the count."""
        return self.count is not None

    @property
    def is_empty(self) -> bool:
        """Return whether the ledger marks the bucket as empty."""
        return self.count == 0

    def clip(self, first: int, last: int) -> tuple[int, int] | None:
        """Return the part of the id interval `[first, last]` that may contain messages, or None."""
        if self.is_empty:
            return None
        low = first if self.first is None else max(first, self.first)
        high = last if self.last is None else min(last, self.last)
        return (low, high) if low <= high else None

    def as_tuple(self) -> LiveTuple:
        """Return the value as the ledger stores it."""
        return (1, 0, 0) if self.is_empty else (self.first, self.last, self.count)

    @classmethod
    def from_tuple(cls, value: LiveTuple | None) -> Live:
        """Return the value from its stored form; an unset column means unknown."""
        return UNKNOWN if value is None else cls(*value)


UNKNOWN = Live()
EMPTY = Live(1, 0, 0)


def stamp_of_live(*, read_began_us: int, skew_seconds: int) -> int:
    """Return the write timestamp (µs) for live bounds derived from a read: older than any clear since that read began.

    Clears are stamped by other clocks, which may lag by that much.
    """
    return read_began_us - skew_seconds * 1_000_000


def live_from_read(lowest: int | None, highest: int | None, count: int, *, sealed: bool, settled_before: int) -> Live:
    """Return the bounds that the ledger may store after one quorum read of a whole bucket.

    `sealed`: whether the bucket was sealed when the read began. `settled_before`: the lowest id of one hour before the
    read began. For an open bucket only `from` may be stored, and it is at most that id, since a post may still arrive
    there.
    """
    if sealed:
        return EMPTY if count == 0 else Live(lowest, highest, count)
    floor = settled_before if lowest is None else min(lowest, settled_before)
    return Live(floor, None, None)
