"""How a bucket is: its state, how bad that is, and why, from what the ledger and the figures say.

Pure: what was measured goes in as plain numbers, None for what nobody measured. Unknown is never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chatstore.domain.live import Live
from chatstore.domain.runs import Severity

SPARSE_BELOW = 50
"""A page's messages: with fewer, readers ask several buckets for one page."""


SLOWED_TIMES = 3
SLOW_FROM_US = 20_000
"""Below 20 ms a page is quick, whatever it was before: there the machine's own noise is three times."""


class BucketState(StrEnum):
    """What an operator calls a bucket; the first that fits, the worst before the others."""

    TOMBSTONES = "tombstones"
    HEAVY = "heavy"
    OPEN = "open"
    EMPTY = "empty"
    UNKNOWN = "unknown"
    SPARSE = "sparse"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on a partition needs somebody: tombstones, bytes."""

    warn_tombstones: int
    alarm_tombstones: int
    warn_bytes: int
    alarm_bytes: int


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a bucket.

    live: what the ledger says, None without a row. may_be_unlisted: whether a bucket without a row
    may hold something all the same. live_rows, tombstones, bytes: as measured last, None when never.
    """

    live: Live | None
    is_open: bool = False
    may_be_unlisted: bool = False
    live_rows: int | None = None
    tombstones: int | None = None
    bytes: int | None = None

    @property
    def is_skipped(self) -> bool:
        """Whether pages don't ask it, since the ledger says that nothing lives there."""
        return not self.may_be_unlisted if self.live is None else self.live.is_nothing

    @property
    def messages(self) -> int | None:
        """How many live there. The ledger's word that nothing does counts for more than an older figure."""
        if self.is_skipped:
            return 0
        counted = self.live.count if self.live is not None else None
        # A figure of 0 beside a ledger that was cleared since: something was written.
        return self.live_rows if self.live_rows or (self.live_rows is not None and counted) else counted


def state_of(known: Known, limits: Limits) -> BucketState:
    """The state of a bucket."""
    if known.tombstones is not None and known.tombstones >= limits.warn_tombstones:
        return BucketState.TOMBSTONES
    if known.bytes is not None and known.bytes >= limits.warn_bytes:
        return BucketState.HEAVY
    if known.is_open:
        return BucketState.OPEN
    if known.is_skipped:
        return BucketState.EMPTY
    messages = known.messages
    if messages is None:
        return BucketState.UNKNOWN
    return BucketState.SPARSE if messages < SPARSE_BELOW else BucketState.LIVE


def severity_of(known: Known, limits: Limits) -> Severity | None:
    """How bad it is; None: nothing is over a limit that we know of."""
    tombstones, size = known.tombstones or 0, known.bytes or 0
    if tombstones >= limits.alarm_tombstones or size >= limits.alarm_bytes:
        return Severity.RED
    if tombstones >= limits.warn_tombstones or size >= limits.warn_bytes:
        return Severity.AMBER
    return None


def costs_much(known: Known, limits: Limits, *, page_us: int | None) -> bool:
    """Whether a bucket is worth a look before others: over a limit, on its way there, or slow to read."""
    return (
        (known.tombstones or 0) * 10 >= limits.warn_tombstones
        or (known.bytes or 0) * 2 >= limits.warn_bytes
        or (page_us or 0) >= SLOW_FROM_US
    )


def dead_share(live_rows: int | None, tombstones: int | None) -> float | None:
    """Which part of what a read of the bucket steps through is dead, 0 to 1; None: not known."""
    if live_rows is None or tombstones is None:
        return None
    return tombstones / (live_rows + tombstones) if tombstones else 0.0


def is_slowed(page_us: int, before_us: int) -> bool:
    """Whether a page that takes so many µs is three times as slow as before, and slow at all."""
    return page_us >= max(SLOWED_TIMES * before_us, SLOW_FROM_US)


def explain(known: Known, limits: Limits) -> str:
    """Why a bucket is in its state, in a sentence or two for people."""
    state = state_of(known, limits)
    if state == BucketState.TOMBSTONES:
        more = " Pages do not ask it, since nothing lives here." if known.is_skipped else ""
        return (
            f"Whoever reads all of it steps over {known.tombstones:,} tombstones. "
            f"Cassandra warns at 1,000 in a read and fails it at 100,000.{more}"
        )
    if state == BucketState.HEAVY:
        return (
            f"The partition is larger than {say_bytes(limits.warn_bytes)}. "
            f"Repair and compaction hold one in memory; keep it below {say_bytes(limits.alarm_bytes)}."
        )
    return _PLAIN_WORDS[state] if known.live is not None or state != BucketState.EMPTY else _NEVER_WRITTEN


_NEVER_WRITTEN = "Nothing was ever written here. Pages do not ask it."

_PLAIN_WORDS = {
    BucketState.OPEN: "Its ten days are not over: messages still arrive, so pages always ask it.",
    BucketState.EMPTY: "Nothing lives here, as a read of all of it found. Pages do not ask it.",
    BucketState.UNKNOWN: (
        "Nobody has read all of it since something was written. Pages ask all of it; verifying it would tell them more."
    ),
    BucketState.SPARSE: f"Fewer than {SPARSE_BELOW} messages live here: pages ask it together with others.",
    BucketState.LIVE: "Messages live here, and nothing is over a limit.",
}


def say_bytes(count: int) -> str:
    """A size as people say it, in decimal units: 812 → "812 B", 1234567 → "1.2 MB"."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
