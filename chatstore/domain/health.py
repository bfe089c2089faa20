"""Health of a bucket: its state, severity and explanation, derived from the ledger and the figures.

Pure functions. Measurements are plain numbers, None if never measured; unknown is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from chatstore.domain.live import Live
from chatstore.domain.runs import Severity
from chatstore.domain.texts import Size, ngettext_lazy, pgettext_lazy
from chatstore.domain.texts import gettext_lazy as _

SPARSE_BELOW = 50
"""Messages per page. Below this count, readers query several buckets for one page."""


SLOWDOWN_FACTOR = 3
SLOW_FROM_US = 20_000
"""A page below 20 ms is fast, whatever it took before: in that range noise alone reaches a factor of three."""


class BucketState(StrEnum):
    """States shown to operators, most severe first; the first that applies is used."""

    TOMBSTONES = "tombstones"
    HEAVY = "heavy"
    OPEN = "open"
    EMPTY = "empty"
    UNKNOWN = "unknown"
    SPARSE = "sparse"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds at which a partition needs attention: tombstones, bytes."""

    warn_tombstones: int
    alarm_tombstones: int
    warn_bytes: int
    alarm_bytes: int


@dataclass(frozen=True, slots=True)
class KnownBucket:
    """Facts known about a bucket.

    live: the ledger's value, None without a row. may_be_unlisted: whether a bucket without a row may contain messages.
    live_rows, tombstones, bytes: the latest measurements, None if never measured.
    """

    live: Live | None
    is_open: bool = False
    may_be_unlisted: bool = False
    live_rows: int | None = None
    tombstones: int | None = None
    bytes: int | None = None

    @property
    def is_skipped(self) -> bool:
        """Return whether pages skip the bucket because the ledger marks it as empty."""
        return not self.may_be_unlisted if self.live is None else self.live.is_empty

    @property
    def messages(self) -> int | None:
        """The number of live messages. The ledger's "empty" takes precedence over an older figure."""
        if self.is_skipped:
            return 0
        counted = self.live.count if self.live is not None else None
        # A figure of 0 although the ledger was cleared since then: something was written.
        return self.live_rows if self.live_rows or (self.live_rows is not None and counted) else counted


def state_of(known: KnownBucket, limits: Limits) -> BucketState:
    """Return the state of a bucket."""
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


def severity_of(known: KnownBucket, limits: Limits) -> Severity | None:
    """Return the severity; None if no known value exceeds a limit."""
    tombstones, size = known.tombstones or 0, known.bytes or 0
    if tombstones >= limits.alarm_tombstones or size >= limits.alarm_bytes:
        return Severity.CRITICAL
    if tombstones >= limits.warn_tombstones or size >= limits.warn_bytes:
        return Severity.WARNING
    return None


def is_expensive(known: KnownBucket, limits: Limits, *, page_us: int | None) -> bool:
    """Return whether a bucket should be checked before others: over a limit, close to one, or slow to read."""
    return (
        (known.tombstones or 0) * 10 >= limits.warn_tombstones
        or (known.bytes or 0) * 2 >= limits.warn_bytes
        or (page_us or 0) >= SLOW_FROM_US
    )


def dead_share(live_rows: int | None, tombstones: int | None) -> float | None:
    """Return the share of tombstones in what a read of the bucket scans, 0 to 1; None if unknown."""
    if live_rows is None or tombstones is None:
        return None
    return tombstones / (live_rows + tombstones) if tombstones else 0.0


def is_slowed(page_us: int, before_us: int) -> bool:
    """Return whether a page's read time (µs) is at least three times the earlier one, and slow in absolute terms."""
    return page_us >= max(SLOWDOWN_FACTOR * before_us, SLOW_FROM_US)


def explain(known: KnownBucket, limits: Limits) -> str:
    """Explain the bucket's state in one or two sentences."""
    state = state_of(known, limits)
    if state == BucketState.TOMBSTONES:
        text = ngettext_lazy(
            "A full read scans %(count)s tombstone. Cassandra warns at %(warns)s per read and aborts the read at "
            "%(aborts)s.",
            "A full read scans %(count)s tombstones. Cassandra warns at %(warns)s per read and aborts the read at "
            "%(aborts)s.",
            known.tombstones or 0,
            warns=1_000,
            aborts=100_000,
        )
        if known.is_skipped:
            return _("%(explanation)s Pages skip this bucket because it is empty.", explanation=text)
        return text
    if state == BucketState.HEAVY:
        return _(
            "The partition is larger than %(warn)s. Repair and compaction load whole partitions into memory; "
            "keep it below %(alarm)s.",
            warn=Size(limits.warn_bytes),
            alarm=Size(limits.alarm_bytes),
        )
    return _EXPLANATIONS[state] if known.live is not None or state != BucketState.EMPTY else _NEVER_WRITTEN


_NEVER_WRITTEN = _("Nothing was ever written here. Pages skip this bucket.")

_EXPLANATIONS = {
    BucketState.OPEN: _("The ten-day window is still open: messages can arrive, so pages always read this bucket."),
    BucketState.EMPTY: _("A full read found no live messages. Pages skip this bucket."),
    BucketState.UNKNOWN: _(
        "No full read since the last write, so pages read all of it. Check for live rows to narrow what they read."
    ),
    BucketState.SPARSE: ngettext_lazy(
        "Fewer than %(count)s live message: pages read this bucket together with others.",
        "Fewer than %(count)s live messages: pages read this bucket together with others.",
        SPARSE_BELOW,
    ),
    BucketState.LIVE: _("Live messages, and no value exceeds a limit."),
}


class ChannelState(IntEnum):
    """States of a channel, shown to operators. Of those that apply, the highest is used."""

    HEALTHY = 1
    UNKNOWN = 2
    SLOW = 3
    HEAVY = 4
    TOMBSTONES = 5
    MISSING_MESSAGES = 6
    """Messages that a purge should have kept are missing: a finding, not a figure."""

    @classmethod
    def choices(cls) -> list[tuple[int, str]]:
        """Return the pairs that a Django field expects."""
        return [(member.value, member.name.lower()) for member in cls]


@dataclass(frozen=True, slots=True)
class KnownChannel:
    """Figures of a channel, None if never measured.

    tombstones, bytes: the maximum of any bucket, and the bucket that has it. page_us, page_rows, page_tombstones: cost
    of the newest page, which reads page_buckets. buckets, empty_buckets: those that were ever written, and those of
    them that are empty.
    """

    tombstones: int | None = None
    tombstones_bucket: int | None = None
    bytes: int | None = None
    bytes_bucket: int | None = None
    page_us: int | None = None
    page_rows: int | None = None
    page_tombstones: int | None = None
    page_buckets: int | None = None
    buckets: int | None = None
    empty_buckets: int | None = None

    @property
    def are_tombstones_known(self) -> bool:
        """True if the tombstones of any bucket were counted: the nightly probe counts them only after deletes."""
        return self.tombstones is not None

    @property
    def empty_share(self) -> float | None:
        """The share of empty buckets, 0 to 1; None if no bucket is known."""
        return self.empty_buckets / self.buckets if self.buckets and self.empty_buckets is not None else None


def state_of_channel(known: KnownChannel, limits: Limits) -> ChannelState:
    """Return the state of a channel by its figures; an open finding can make it worse.

    The limits are those of findings, so a channel over a limit has a finding too.
    """
    if (known.tombstones or 0) >= limits.warn_tombstones:
        return ChannelState.TOMBSTONES
    if (known.bytes or 0) >= limits.warn_bytes:
        return ChannelState.HEAVY
    if (known.page_us or 0) >= SLOW_FROM_US or (known.page_tombstones or 0) >= limits.warn_tombstones:
        return ChannelState.SLOW
    return ChannelState.UNKNOWN if known.page_us is None else ChannelState.HEALTHY


def severity_of_channel(known: KnownChannel, limits: Limits) -> Severity | None:
    """Return the highest severity of its buckets; None if no known value exceeds a limit."""
    return severity_of(KnownBucket(live=None, tombstones=known.tombstones, bytes=known.bytes), limits)


SOURCE_LABELS: Mapping[str, str] = {
    "ledger": pgettext_lazy("source of a figure", "ledger"),
    "own read": pgettext_lazy("source of a figure", "full read"),
    "probe": pgettext_lazy("source of a figure", "probe"),
    "aborted read": pgettext_lazy("source of a figure", "aborted read"),
    "purge": pgettext_lazy("source of a figure", "purge"),
    "purge estimate": pgettext_lazy("source of a figure", "purge, at most"),
    "repair": pgettext_lazy("source of a figure", "repair"),
    "repair history": pgettext_lazy("source of a figure", "repair history"),
    "top partitions": pgettext_lazy("source of a figure", "top partitions"),
}
"""Labels of the sources that figures are recorded with."""
