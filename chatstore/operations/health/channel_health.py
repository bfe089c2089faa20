"""Health of a channel by bucket, from the ledger, the figures and the job runs; no bucket is read.

Takes two store statements, a read of the repair history and a Postgres query, however many buckets there are.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from django.conf import settings
from django.contrib.auth.models import AbstractUser, AnonymousUser

from chatstore.domain.buckets import bucket_at, bucket_days, bucket_of, bucket_window, is_sealed
from chatstore.domain.errors import NotFound, StoreUnavailable
from chatstore.domain.health import (
    BucketState,
    ChannelState,
    KnownBucket,
    KnownChannel,
    Limits,
    dead_share,
    explain,
    is_expensive,
    severity_of,
    state_of,
    state_of_channel,
)
from chatstore.domain.live import Live
from chatstore.domain.milliseconds import time_at
from chatstore.domain.runs import Severity
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, unix_ms
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Finding
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.channels import findings_of_channels, state_by_finding, worst_finding
from chatstore.operations.repair_status.repair_clock import (
    MESSAGES,
    last_full_repair_of,
    last_repairs_of,
)
from chatstore.operations.rights import READ_HEALTH, require_channel
from chatstore.store import figures, ledger
from chatstore.store.figures import Figure

STALE_AFTER = dt.timedelta(hours=26)
"""A figure older than a night and two hours is stale and needs attention."""

MAX_EMPTY_GAP = 18
"""Consecutive never-written buckets that are listed one by one; longer gaps are collapsed."""

NEWEST_PAGE_US = "newest_page_us"
NEWEST_PAGE_ROWS = "newest_page_rows"
NEWEST_PAGE_TOMBSTONES = "newest_page_tombstones"
NEWEST_PAGE_STATEMENTS = "newest_page_statements"
NEWEST_PAGE_BUCKETS = "newest_page_buckets"
"""Figures of the channel, stored with the bucket that was its newest when they were measured."""

TOMBSTONES, SEEN_BY_REPAIR = "tombstones", "tombstones_seen_by_repair"
"""Tombstones that a full read scanned, and tombstones that the last comparison of replicas listed."""

REPAIRED_AT = "repaired_at"
"""Start of the last full repair of the bucket, in Unix milliseconds."""

REPAIR_HISTORY = "repair history"
"""Source of repairs that Cassandra's own history names."""


@dataclass(frozen=True, slots=True)
class BucketHealth:
    """Known state of a bucket.

    figures: everything measured of it, by name. live: its ledger entry; None: no ledger row.
    """

    bucket: int
    known: KnownBucket
    state: BucketState
    severity: Severity | None
    figures: Mapping[str, Figure] = field(default_factory=dict)
    repaired: Figure | None = None
    why: str = ""

    @property
    def live(self) -> Live | None:
        """Ledger entry; None: no ledger row."""
        return self.known.live

    @property
    def first_day(self) -> dt.date:
        """First of its ten days, in UTC."""
        return bucket_days(self.bucket)[0]

    @property
    def last_day(self) -> dt.date:
        """Last of its ten days, in UTC."""
        return bucket_days(self.bucket)[1]

    @property
    def messages(self) -> int | None:
        """Number of live messages; None: unknown."""
        return self.known.messages

    @property
    def messages_figure(self) -> Figure | None:
        """Figure that `messages` comes from, if it was measured; the ledger itself records no time."""
        figure = self.figures.get("live_rows")
        return figure if figure is not None and figure.value == self.messages else None

    @property
    def tombstones_figure(self) -> Figure | None:
        """Latest count of its tombstones."""
        return tombstones_in(self.figures)

    @property
    def dead_percent(self) -> float | None:
        """Share of tombstones among the rows that a full read scans, 0 to 100; None: unknown."""
        share = dead_share(self.messages, self.known.tombstones)
        return None if share is None else share * 100

    @property
    def repaired_at(self) -> dt.datetime | None:
        """Start of the last full repair that covered it; None: none is known."""
        return None if self.repaired is None else time_at(self.repaired.value)

    @property
    def latest(self) -> Figure | None:
        """Most recently measured figure."""
        return max(self.figures.values(), key=lambda figure: figure.measured_at, default=None)

    @property
    def page_us(self) -> int | None:
        """Duration of reading its first page, from its newest message on, in µs; None: unknown."""
        return _value_of(self.figures.get("page_us"))

    @property
    def was_written(self) -> bool:
        """True if it has a ledger row or a figure."""
        return self.live is not None or bool(self.figures)


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """Known state of a channel: its buckets, oldest first, from its creation or first message to now.

    newest_page: cost of its newest page, by name of the figure. now: Postgres's clock.
    """

    channel_id: int
    buckets: Sequence[BucketHealth]
    newest_page: Mapping[str, Figure]
    findings: Sequence[Finding]
    last_repair: Figure | None
    now: dt.datetime

    @property
    def last_repair_at(self) -> dt.datetime | None:
        """Start of the last full repair of all nodes, as the repair clock has it; None: none within 30 days."""
        return None if self.last_repair is None else time_at(self.last_repair.value)

    @property
    def states(self) -> Mapping[BucketState, int]:
        """Number of buckets by state, of those with a ledger row or figures."""
        return Counter(bucket.state for bucket in self.buckets if bucket.was_written)

    @property
    def messages(self) -> int:
        """Counted messages in all buckets; a lower bound if `uncounted` is not 0."""
        return sum(bucket.messages or 0 for bucket in self.buckets)

    @property
    def uncounted(self) -> int:
        """Number of buckets whose live messages have not been counted."""
        return sum(1 for bucket in self.buckets if bucket.messages is None)

    @property
    def is_current_uncounted(self) -> bool:
        """True if the bucket of the newest messages is one of those."""
        return any(bucket.messages is None and bucket.state is BucketState.OPEN for bucket in self.buckets)

    @property
    def was_measured(self) -> bool:
        """True if any bucket has figures."""
        return any(entry.figures for entry in self.buckets)

    @property
    def worst_bucket(self) -> BucketHealth | None:
        """The bucket with the most tombstones; None: none were counted."""
        counted = [entry for entry in self.buckets if entry.known.tombstones is not None]
        return max(counted, key=lambda entry: (entry.known.tombstones, entry.bucket), default=None)

    @property
    def largest_bucket(self) -> BucketHealth | None:
        """The bucket with the most bytes; None: none was measured."""
        measured = [entry for entry in self.buckets if entry.known.bytes is not None]
        return max(measured, key=lambda entry: (entry.known.bytes, entry.bucket), default=None)

    @property
    def known(self) -> KnownChannel:
        """Figures from which its state follows."""
        worst, largest, states = self.worst_bucket, self.largest_bucket, self.states
        page = self.newest_page.get(NEWEST_PAGE_US)
        return KnownChannel(
            tombstones=None if worst is None else worst.known.tombstones,
            tombstones_bucket=None if worst is None else worst.bucket,
            bytes=None if largest is None else largest.known.bytes,
            bytes_bucket=None if largest is None else largest.bucket,
            page_us=_value_of(page),
            page_rows=self._of_page(NEWEST_PAGE_ROWS, page),
            page_tombstones=_value_of(self.newest_page.get(NEWEST_PAGE_TOMBSTONES)),
            page_buckets=self._of_page(NEWEST_PAGE_BUCKETS, page),
            buckets=sum(states.values()),
            empty_buckets=states.get(BucketState.EMPTY, 0),
        )

    @property
    def figure_state(self) -> ChannelState:
        """State of the channel by its figures."""
        return state_of_channel(self.known, health_limits())

    @property
    def state(self) -> ChannelState:
        """State of the channel, by its figures and by its open findings."""
        return max([self.figure_state, *map(state_by_finding, self.findings)])

    @property
    def decisive_finding(self) -> Finding | None:
        """The finding that the state follows from; None: it follows from the figures."""
        return worst_finding(self.findings) if self.state > self.figure_state else None

    def _of_page(self, name: str, page: Figure | None) -> int | None:
        """Return a number of a page. One whose read was aborted has none; that of an earlier page is not its own."""
        found = self.newest_page.get(name)
        return found.value if found is not None and page is not None and found.measured_at == page.measured_at else None

    def findings_in(self, bucket: int) -> list[Finding]:
        """Return the open findings about a bucket."""
        return [one for one in self.findings if one.subject.split(":")[:2] == [str(self.channel_id), str(bucket)]]

    def worst(self, limit: int) -> list[BucketHealth]:
        """Return the buckets that are expensive to read, worst first."""
        limits = health_limits()
        found = [entry for entry in self.buckets if is_expensive(entry.known, limits, page_us=entry.page_us)]
        return sorted(found, key=_badness, reverse=True)[:limit]

    def find(self, bucket: int) -> BucketHealth:
        """Return one bucket. Raises `NotFound` if it is in the future or outside the range of ids."""
        for entry in self.buckets:
            if entry.bucket == bucket:
                return entry
        open_bucket = bucket_at(unix_ms(self.now))
        if not bucket_of(MIN_ID) <= bucket <= min(open_bucket, bucket_of(MAX_ID)):
            raise NotFound(_("Bucket %(bucket)s does not exist yet.", bucket=str(bucket)))
        return _describe(bucket, None, {}, now=self.now, last_repair=self.last_repair)

    def is_stale(self, figure: Figure | None) -> bool:
        """Return whether a figure is stale and needs attention."""
        return figure is not None and self.now - figure.measured_at > STALE_AFTER


def health_limits() -> Limits:
    """Return the limits from settings."""
    return Limits(
        settings.HEALTH_WARN_TOMBSTONES,
        settings.HEALTH_ALARM_TOMBSTONES,
        settings.HEALTH_WARN_BYTES,
        settings.HEALTH_ALARM_BYTES,
    )


def read_channel_health(user: AbstractUser | AnonymousUser | None, channel_id: int) -> ChannelHealth:
    """Return the last measured health of a channel. user: None for commands.

    Raises `Forbidden`, `NotFound` for a channel that the user cannot see, `StoreUnavailable`.
    """
    if user is not None:
        require_channel(user, READ_HEALTH, channel_id)
    now = postgres_now()
    lives, measured = dict(ledger.read_ledger(channel_id)), figures.read_figures(channel_id)
    findings = findings_of_channels([channel_id]).get(channel_id, [])
    return describe_channel(channel_id, lives, measured, now=now, findings=findings, last_repair=last_full_repair(now))


def describe_channel(
    channel_id: int,
    lives: Mapping[int, Live],
    measured: Mapping[int, Mapping[str, Figure]],
    *,
    now: dt.datetime,
    findings: Sequence[Finding] = (),
    last_repair: Figure | None = None,
) -> ChannelHealth:
    """Return the health of a channel. lives, measured: its ledger and figures by bucket."""
    listed = _list_buckets(channel_id, lives.keys() | measured.keys(), now=now)
    return ChannelHealth(
        channel_id=channel_id,
        buckets=[_describe(b, lives.get(b), measured.get(b, {}), now=now, last_repair=last_repair) for b in listed],
        newest_page=_newest_page(measured),
        findings=findings,
        last_repair=last_repair,
        now=now,
    )


def with_repair_history(channel_id: int, entries: Sequence[BucketHealth]) -> list[BucketHealth]:
    """Return buckets with their last repairs from Cassandra's history, if readable; that of all nodes may be earlier.

    Takes one read of the history.
    """
    now = postgres_now()
    try:
        began_at = last_repairs_of([(channel_id, entry.bucket) for entry in entries])
    except StoreUnavailable:
        return list(entries)
    return [_with_repair(entry, began_at[channel_id, entry.bucket], now) for entry in entries]


def _with_repair(entry: BucketHealth, began_at: dt.datetime | None, now: dt.datetime) -> BucketHealth:
    if began_at is None or (entry.repaired_at is not None and entry.repaired_at >= began_at):
        return entry
    return replace(entry, repaired=Figure(unix_ms(began_at), REPAIR_HISTORY, now))


def last_full_repair(now: dt.datetime) -> Figure | None:
    """Return the start of the last full repair of messages on all nodes, as a figure (`repaired_at`), read at `now`.

    It is that of the repair clock, whichever tool started it. None also if the history cannot be read.
    """
    try:
        began_at = last_full_repair_of(MESSAGES)
    except StoreUnavailable:
        return None
    return None if began_at is None else Figure(unix_ms(began_at), REPAIR_HISTORY, now)


def tombstones_in(found: Mapping[str, Figure]) -> Figure | None:
    """Return the later of the two counts of a bucket's tombstones; None: neither was measured."""
    counts = [found[name] for name in (TOMBSTONES, SEEN_BY_REPAIR) if name in found]
    return max(counts, key=lambda figure: figure.measured_at, default=None)


def _newest_page(measured: Mapping[int, Mapping[str, Figure]]) -> Mapping[str, Figure]:
    """Return the channel's own figures from the bucket where they were recorded last."""
    noted = [found for found in measured.values() if NEWEST_PAGE_US in found]
    if not noted:
        return {}
    latest = max(noted, key=lambda found: found[NEWEST_PAGE_US].measured_at)
    names = (
        NEWEST_PAGE_US, NEWEST_PAGE_ROWS, NEWEST_PAGE_TOMBSTONES, NEWEST_PAGE_STATEMENTS, NEWEST_PAGE_BUCKETS
    )  # fmt: skip
    return {name: latest[name] for name in names if name in latest}


def _list_buckets(channel_id: int, written: Iterable[int], *, now: dt.datetime) -> list[int]:
    """Return the written buckets, the open one, and the ones in between, without long gaps."""
    newest = bucket_at(unix_ms(now))
    # Imported channel ids may be in the future.
    ends = sorted({*written, newest, min(bucket_of(channel_id), newest)})
    listed = ends[:1]
    for before, bucket in pairwise(ends):
        if bucket - before <= MAX_EMPTY_GAP:
            listed += range(before + 1, bucket)
        listed.append(bucket)
    return listed


def _describe(
    bucket: int, live: Live | None, found: Mapping[str, Figure], *, now: dt.datetime, last_repair: Figure | None
) -> BucketHealth:
    known = KnownBucket(
        live=live,
        is_open=not is_sealed(bucket, now_ms=unix_ms(now)),
        may_be_unlisted=not settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN,
        live_rows=_value_of(found.get("live_rows")),
        tombstones=_value_of(tombstones_in(found)),
        bytes=_value_of(found.get("bytes")),
    )
    limits = health_limits()
    return BucketHealth(
        bucket=bucket,
        known=known,
        state=state_of(known, limits),
        severity=severity_of(known, limits),
        figures=found,
        repaired=_last_repair_of(bucket, found.get(REPAIRED_AT), last_repair),
        why=explain(known, limits),
    )


def _value_of(figure: Figure | None) -> int | None:
    return None if figure is None else figure.value


def _last_repair_of(bucket: int, own: Figure | None, of_all: Figure | None) -> Figure | None:
    """Return the later of the bucket's own repair and the last full repair, if that began after its first day."""
    if of_all is not None and of_all.value < unix_ms(bucket_window(bucket)[0]):
        of_all = None
    return max((figure for figure in (own, of_all) if figure is not None), key=lambda f: f.value, default=None)


def _badness(entry: BucketHealth) -> tuple[int, int, int]:
    return (entry.severity or 0, entry.known.tombstones or 0, entry.page_us or 0)
