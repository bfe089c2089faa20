"""The bucket strip as a picture of health: each bar shows what a read of its bucket scans.

The height is messages and tombstones together on a log scale, with the tombstones on top. The
color is the bucket's state, which the bar's title states too. Every bar is counted in the legend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from chatstore.domain.buckets import bucket_days
from chatstore.domain.health import BucketState, KnownBucket
from moderation.presentation import formats
from moderation.presentation.strip import BESIDE_CHANNELS, Strip, StripBucket, draw_strip

STATE_LABELS: dict[BucketState, str | Promise] = {
    BucketState.LIVE: pgettext_lazy("state of a bucket", "healthy"),
    BucketState.SPARSE: pgettext_lazy("state of a bucket", "sparse"),
    BucketState.HEAVY: pgettext_lazy("state of a bucket", "too large"),
    BucketState.TOMBSTONES: pgettext_lazy("state of a bucket", "too many tombstones"),
    BucketState.EMPTY: pgettext_lazy("state of a bucket", "empty"),
    BucketState.OPEN: pgettext_lazy("state of a bucket", "current"),
    BucketState.UNKNOWN: pgettext_lazy("state of a bucket", "unknown"),
}
"""The states in the order of the legend."""

EMPTIED, UNWRITTEN = "emptied", "unwritten"
"""Kinds of bars besides the states, both of empty buckets: with tombstones, and never written."""

_KIND_LABELS: dict[str, str | Promise] = {
    **{state.value: label for state, label in STATE_LABELS.items()},
    EMPTIED: pgettext_lazy("state of a bucket", "empty, with tombstones"),
    UNWRITTEN: pgettext_lazy("state of a bucket", "never written"),
}


@dataclass(frozen=True, slots=True)
class BucketEntry:
    """A bucket: its known figures, and the state that follows from them.

    was_written: it has a ledger row or figures.
    """

    bucket: int
    known: KnownBucket
    state: BucketState
    was_written: bool = True

    @property
    def kind(self) -> str:
        """The kind of its bar: its state, of which empty buckets have three."""
        if self.state != BucketState.EMPTY:
            return self.state.value
        if not self.was_written:
            return UNWRITTEN
        return EMPTIED if self.known.tombstones else BucketState.EMPTY.value


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A kind of bars, and how many of them are drawn."""

    kind: str
    label: str | Promise
    count: int


def draw_health(entries: Iterable[BucketEntry], *, here: int | None = None) -> Strip:
    """Draw the strip of a channel's buckets. here: the bucket that the page is about."""
    chosen = None if here is None else range(here, here + 1)
    return draw_strip((_bar_of(entry) for entry in entries), here=chosen, is_log=True, width=BESIDE_CHANNELS)


def describe_legend(entries: Iterable[BucketEntry]) -> list[LegendEntry]:
    """Return the kinds of bars that are drawn, each bucket counted once."""
    counts = Counter(entry.kind for entry in entries)
    return [LegendEntry(kind, label, counts[kind]) for kind, label in _KIND_LABELS.items() if kind in counts]


def _bar_of(entry: BucketEntry) -> StripBucket:
    messages, dead = entry.known.messages, entry.known.tombstones or 0
    total = None if messages is None else messages + dead
    return StripBucket(
        entry.bucket,
        total,
        # Less than a hundredth would be invisible, but the strip draws at least three pixels.
        highlighted=dead if dead * 100 >= (total or 0) else 0,
        kind=entry.kind,
        title=_("%(days)s: %(figures)s")
        % {"days": formats.format_days(*bucket_days(entry.bucket)), "figures": describe_entry(entry)},
    )


def describe_entry(entry: BucketEntry) -> str:
    """Describe a bucket in one line: "sparse, 12 messages, 4 tombstones, 1.2 kB"; unknown figures are named."""
    known = entry.known
    if entry.kind == UNWRITTEN:
        return _("never written")
    return _("%(state)s, %(messages)s, %(tombstones)s, %(size)s") % {
        "state": STATE_LABELS[entry.state],
        "messages": formats.format_count(known.messages, "message"),
        "tombstones": formats.format_count(known.tombstones, "tombstone"),
        "size": _("unknown size") if known.bytes is None else formats.format_size(known.bytes),
    }
