"""What the ledger says of a bucket: whether, and between which ids, anything lives.

Stored as `bucket_ledger.live`, a frozen tuple `(from, to, how many)`:

    (a, b, n)             sealed when looked at: n messages, the lowest a, the highest b
    (a, null, null)       nothing lives below a; above it anything may
    (1, 0, 0)             nothing lives here
    (null, null, null)    not known: ask the whole bucket
"""

from __future__ import annotations

from dataclasses import dataclass

LiveTuple = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class Live:
    """Bounds of what lives in a bucket, both inclusive; `None` is "not known"."""

    first: int | None = None
    last: int | None = None
    count: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether the count was measured by a whole read of the sealed bucket."""
        return self.count is not None

    @property
    def is_nothing(self) -> bool:
        """Whether the ledger says that nothing lives here."""
        return self.count == 0

    def clip(self, first: int, last: int) -> tuple[int, int] | None:
        """The part of the id interval `[first, last]` that may hold something, or None."""
        if self.is_nothing:
            return None
        low = first if self.first is None else max(first, self.first)
        high = last if self.last is None else min(last, self.last)
        return (low, high) if low <= high else None

    def as_tuple(self) -> LiveTuple:
        """The value as the ledger stores it."""
        return (1, 0, 0) if self.is_nothing else (self.first, self.last, self.count)

    @classmethod
    def from_tuple(cls, value: LiveTuple | None) -> Live:
        """From the stored value; an unset column reads as not known."""
        return UNKNOWN if value is None else cls(*value)


UNKNOWN = Live()
NOTHING = Live(1, 0, 0)


def stamp_of_live(*, read_began_us: int, skew_seconds: int) -> int:
    """The stamp (µs) of what a read that began then allows to say: it loses to whatever was cleared since.

    Clears are stamped by other clocks, which may be as much as that behind (DESIGN.md §4).
    """
    return read_began_us - skew_seconds * 1_000_000


def live_from_read(lowest: int | None, highest: int | None, count: int, *, sealed: bool, settled_before: int) -> Live:
    """What one quorum read of a whole bucket allows the ledger to say.

    `sealed`: whether the bucket was sealed when the read began. `settled_before`: the
    lowest id of one hour before the read began; an open bucket may only say that nothing
    lives below `from`, and `from` is at most that id, since a post may still arrive there.
    """
    if sealed:
        return NOTHING if count == 0 else Live(lowest, highest, count)
    floor = settled_before if lowest is None else min(lowest, settled_before)
    return Live(floor, None, None)
