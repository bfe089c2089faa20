"""The bucket strip as a picture of health: each bar is what a read of its bucket steps through.

The height is messages and tombstones together, on a log scale, the dead part on top; the
colour is the bucket's state, which the bar's words say too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chatstore.domain.buckets import bucket_days, days_in_words
from chatstore.domain.health import BucketState, Known, say_bytes
from moderation.presentation.strip import WIDE, Strip, StripBucket, draw_strip

STATE_WORDS = {
    BucketState.LIVE: "live",
    BucketState.SPARSE: "sparse",
    BucketState.HEAVY: "heavy",
    BucketState.TOMBSTONES: "tombstones",
    BucketState.EMPTY: "empty",
    BucketState.OPEN: "open",
    BucketState.UNKNOWN: "not known",
}
"""The states in the order of the legend."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A bucket as it is known, and the state that follows."""

    bucket: int
    known: Known
    state: BucketState


def draw_health(entries: Iterable[Entry], *, here: int | None = None) -> Strip:
    """The strip of a channel's buckets. here: the one that the page is about."""
    chosen = None if here is None else range(here, here + 1)
    return draw_strip((_bar_of(entry) for entry in entries), here=chosen, room=WIDE)


def _bar_of(entry: Entry) -> StripBucket:
    messages, dead = entry.known.messages, entry.known.tombstones or 0
    total = None if messages is None else messages + dead
    return StripBucket(
        entry.bucket,
        total,
        # Below a hundredth nothing would be seen of it; the strip draws three pixels at the least.
        going=dead if dead * 100 >= (total or 0) else 0,
        kind=entry.state.value,
        title=f"{days_in_words(*bucket_days(entry.bucket))}: {say_entry(entry)}",
    )


def say_entry(entry: Entry) -> str:
    """A bucket in one line: "sparse, 12 messages, 4 tombstones, 1.2 kB"; what is not known is said."""
    known = entry.known
    if known.live is None and known.is_skipped and known.tombstones is None:
        return "empty, nothing was ever written"
    words = [
        STATE_WORDS[entry.state],
        _say(known.messages, "message"),
        _say(known.tombstones, "tombstone"),
        "size not known" if known.bytes is None else say_bytes(known.bytes),
    ]
    return ", ".join(words)


def _say(count: int | None, noun: str) -> str:
    if count is None:
        return f"{noun}s not known"
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
