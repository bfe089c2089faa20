"""Probes: measure the cost of the newest page, nightly for active channels and on request.

The nightly run covers channels that were recently written to or had deletes, those probed longest ago first, until its
time budget is used up; the remaining ones come first the next night. With the time that is left it probes other
channels that were not probed for 90 days, so that the table of all channels knows each of them. A channel's daily row
is written when it has been probed, so that an interrupted run continues where it was. If a page of a bucket has become
three times as slow since before its last deletes, the files of the bucket are merged.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery, Sum

from chatstore.domain.buckets import bucket_at, bucket_ids, format_bucket
from chatstore.domain.errors import BadInput, StoreUnavailable, TooManyTombstones
from chatstore.domain.health import is_slowed
from chatstore.domain.live import UNKNOWN
from chatstore.domain.slices import Slice
from chatstore.domain.snowflakes import parse_snowflake, unix_ms
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import BucketDeletes, Channel, ChannelDay, JobRun
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health.channel_health import (
    NEWEST_PAGE_BUCKETS,
    NEWEST_PAGE_ROWS,
    NEWEST_PAGE_STATEMENTS,
    NEWEST_PAGE_TOMBSTONES,
    NEWEST_PAGE_US,
)
from chatstore.operations.health.history import delete_old_days, note_day
from chatstore.operations.health.measured import show_measured
from chatstore.operations.health.summaries import refresh_states
from chatstore.operations.jobs.runs import Claim, request_automatic_run
from chatstore.operations.ledger.delete_log import last_delete
from chatstore.store import figures, ledger, probing, scans
from chatstore.store.figures import Figure
from chatstore.store.reading import reader

SOURCE = "probe"
ABORTED = "aborted read"

PAGE_SIZE = 50
"""Messages per page; one more is read, as pages do, to know whether others follow."""

TOMBSTONE_FAILURE_THRESHOLD = 100_000
"""Number of tombstones at which Cassandra aborts a read: the minimum that an aborted read met."""

CHANNELS_PER_CHECK = 200
"""Channels whose newest ledger rows are read concurrently."""

RECENT_BUCKETS = 2
"""A channel written to in this many of the newest buckets, the open one included, is probed every night."""

RECENT_DELETES_WINDOW = dt.timedelta(days=2)
MAX_BUCKETS_PER_CHANNEL = 20
"""Maximum number of buckets with deletes probed per channel and night, those with the most first."""

MAX_CONSECUTIVE_FAILURES = 5
"""After this many consecutive failures the store is at fault, not a channel."""

FULL_READ_MIN_DELETES = 100
"""Number of deletes from which on a bucket is read completely, to count its tombstones."""


def probe_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "probe" for everything due, for a channel ("<id>"), or for a bucket ("<id>:<bucket>")."""
    if not claim.run.subject:
        now = postgres_now()
        delete_old_days(now.date())
        refresh_states()
        return probe_channels(claim, due_channels(now))
    channel_id, bucket = parse_subject(claim.run.subject)
    if bucket is None:
        result = probe_channel(channel_id, now=postgres_now())
    else:
        result = probe_bucket(channel_id, bucket, whole=True)
        note_day(channel_id, now=postgres_now(), read_ms=None)
    show_measured(channel_id)
    return result


def parse_subject(subject: str) -> tuple[int, int | None]:
    """Return (channel, bucket or None) from a run's subject. Raises `BadInput`."""
    channel, _, bucket = subject.partition(":")
    return parse_snowflake(channel), parse_snowflake(bucket) if bucket else None


def parse_bucket_subject(subject: str) -> tuple[int, int]:
    """Return (channel, bucket) from a run's subject. Raises `BadInput` if it names no bucket."""
    channel_id, bucket = parse_subject(subject)
    if bucket is None:
        raise BadInput(_("This job needs a bucket, not a whole channel."))
    return channel_id, bucket


def probe_channel(channel_id: int, *, now: dt.datetime) -> dict[str, int]:
    """Read the newest page as users do; record its cost and the channel's day. Raises `StoreUnavailable`."""
    bucket = _newest_bucket(channel_id)
    try:
        cost = reader.trace_newest_page(channel_id, limit=PAGE_SIZE)
    except TooManyTombstones:
        return _note_aborted_read(channel_id, bucket, now=now)
    found = {
        NEWEST_PAGE_US: round(cost.milliseconds * 1000),
        NEWEST_PAGE_ROWS: cost.rows,
        NEWEST_PAGE_TOMBSTONES: cost.tombstones,
        NEWEST_PAGE_STATEMENTS: cost.statements,
        NEWEST_PAGE_BUCKETS: cost.buckets,
    }
    figures.note_figures(channel_id, bucket, found, source=SOURCE, measured_at=cost.measured_at)
    if cost.statements:
        # Without a statement nothing was read, and there is no newest page to probe.
        probe_bucket(channel_id, bucket, whole=False)
    note_day(channel_id, now=now, read_ms=cost.milliseconds)
    return {"microseconds": found[NEWEST_PAGE_US], "tombstones": cost.tombstones, "statements": cost.statements}


def probe_bucket(channel_id: int, bucket: int, *, whole: bool) -> dict[str, int]:
    """Read the newest page of a bucket within its live range, and record its cost.

    whole: also read the ids of the whole bucket, and count live rows and tombstones. A bucket without live
    rows is neither read nor recorded. Raises `StoreUnavailable`.
    """
    result: dict[str, int] = {}
    span = (ledger.read_live(channel_id, bucket) or UNKNOWN).clip(*bucket_ids(bucket))
    if span is not None:
        page = probing.read_bucket_page(channel_id, Slice(bucket, *span), limit=PAGE_SIZE + 1)
        result |= note_page(channel_id, bucket, page)
    if whole:
        result |= _note_whole(channel_id, bucket)
    return result


def note_page(channel_id: int, bucket: int, page: probing.BucketPage) -> dict[str, int]:
    if page.milliseconds is None or page.tombstones is None:
        found = {"page_tombstones": TOMBSTONE_FAILURE_THRESHOLD, "tombstones": TOMBSTONE_FAILURE_THRESHOLD}
        figures.note_figures(channel_id, bucket, found, source=ABORTED, measured_at=page.measured_at)
        return {"tombstones at least": TOMBSTONE_FAILURE_THRESHOLD}
    cost = {"page_us": round(page.milliseconds * 1000), "page_tombstones": page.tombstones}
    before = figures.read_figures(channel_id).get(bucket, {})
    figures.note_figures(channel_id, bucket, cost, source=SOURCE, measured_at=page.measured_at)
    check_page_slowdown(channel_id, bucket, Figure(cost["page_us"], SOURCE, page.measured_at), before)
    return {"microseconds": cost["page_us"], "tombstones in the page": page.tombstones}


def _note_whole(channel_id: int, bucket: int) -> dict[str, int]:
    measured_at = postgres_now()
    pages = scans.read_all_ids(channel_id, bucket)
    live = sum(1 for rows in pages for _, author_id in rows if author_id is not None)
    found = {"live_rows": live, "tombstones": pages.count_tombstones()}
    figures.note_figures(channel_id, bucket, found, source=SOURCE, measured_at=measured_at)
    return {"messages": live, "tombstones": found["tombstones"]}


def _note_aborted_read(channel_id: int, bucket: int, *, now: dt.datetime) -> dict[str, int]:
    """Record the page of a channel whose reads fail on tombstones; readers split the range, and that is timed."""
    began = time.monotonic()
    reader.read_page(channel_id, limit=PAGE_SIZE)
    milliseconds = (time.monotonic() - began) * 1000
    found = {NEWEST_PAGE_US: round(milliseconds * 1000), NEWEST_PAGE_TOMBSTONES: TOMBSTONE_FAILURE_THRESHOLD}
    figures.note_figures(channel_id, bucket, found, source=ABORTED, measured_at=now)
    note_day(channel_id, now=now, read_ms=milliseconds)
    return {"microseconds": found[NEWEST_PAGE_US], "tombstones at least": TOMBSTONE_FAILURE_THRESHOLD}


def _newest_bucket(channel_id: int) -> int:
    rows = ledger.read_ledger(channel_id, newest=1)
    return rows[0][0] if rows else bucket_at(unix_ms(postgres_now()))


# --- Slower than before ---------------------------------------------------------------------------

PAGE_BEFORE = "page_us_before"
"""Duration of reading the bucket's page before its last deletes."""


def check_page_slowdown(channel_id: int, bucket: int, page: Figure, before: Mapping[str, Figure]) -> None:
    """Record the duration of a page while nothing was deleted; merge the bucket if it is three times as slow since."""
    deleted_at = last_delete(channel_id, bucket)
    base = before.get(PAGE_BEFORE)
    if deleted_at is None:
        if base is None or not is_slowed(page.value, base.value):
            _note_before(channel_id, bucket, page)
        return
    last = before.get("page_us")
    if base is None and last is not None and last.measured_at < deleted_at:
        base = last
        _note_before(channel_id, bucket, base)
    before_us = base.value if base is not None else _page_of_channel_before(channel_id, bucket)
    if before_us is not None and is_slowed(page.value, before_us):
        subject = format_bucket(channel_id, bucket)
        if not JobRun.objects.filter(job="merge", subject=subject, due_at__gt=deleted_at).exists():
            request_automatic_run("merge", subject=subject)


def _note_before(channel_id: int, bucket: int, page: Figure) -> None:
    figures.note_figures(
        channel_id, bucket, {PAGE_BEFORE: page.value}, source=page.source, measured_at=page.measured_at
    )


def _page_of_channel_before(channel_id: int, bucket: int) -> int | None:
    """Return the duration of the channel's newest page, in µs, on the last day before the bucket's deletes, or None."""
    deletes = BucketDeletes.objects.filter(channel_id=channel_id, bucket=bucket).order_by("hour").first()
    if deletes is None:
        return None
    days = ChannelDay.objects.filter(channel_id=channel_id, day__lt=deletes.hour.date(), read_ms__isnull=False)
    last = days.order_by("-day").first()
    return None if last is None or last.read_ms is None else round(last.read_ms * 1000)


# --- Each night -----------------------------------------------------------------------------------


def due_channels(now: dt.datetime) -> list[int]:
    """Return channels not probed today: those with deletes first, then those probed longest ago."""
    days = ChannelDay.objects.filter(channel_id=OuterRef("pk"), read_ms__isnull=False).order_by("-day")
    rows = Channel.objects.annotate(last=Subquery(days.values("day")[:1])).values_list("pk", "last")
    first = set(_deletes(now).values_list("channel_id", flat=True).distinct())
    due = [(pk not in first, last or dt.date.min, pk) for pk, last in rows if last is None or last < now.date()]
    return [pk for *_, pk in sorted(due)]


def request_probes(channel_ids: Collection[int]) -> None:
    """Request probes of channels that were just filled: of those that were probed before by runs of their own.

    Their first figures are those of another content, and of servers that were busy with the filling.
    """
    subjects = {str(channel_id) for channel_id in _probed(channel_ids).values_list("channel_id", flat=True)}
    for subject in ("", *sorted(subjects)):
        request_automatic_run("probe", subject=subject)


def probe_channels(claim: Claim, due: Sequence[int]) -> dict[str, int]:
    """Probe channels until `PROBE_SECONDS` have passed, the active ones first; return counts by name.

    Raises what `Claim.report_progress` raises, and `StoreUnavailable` if every read fails; finished probes are kept.
    A channel that cannot be read is due again in the next run.
    """
    now = postgres_now()
    give_up = time.monotonic() + settings.PROBE_SECONDS
    result = {"channels": 0, "buckets with deletes": 0, "failed": 0, "left for the next run": 0}
    consecutive_failures = 0
    for number, (channel_id, had_deletes) in _in_turn(due, now=now):
        if time.monotonic() > give_up:
            return result | {"left for the next run": len(due) - number}
        claim.report_progress(done=number, total=len(due), what=_label_of(channel_id))
        try:
            result["buckets with deletes"] += _probe_buckets(channel_id, now=now) if had_deletes else 0
            probe_channel(channel_id, now=now)
        except StoreUnavailable:
            result["failed"] += 1
            consecutive_failures += 1
            if consecutive_failures >= MAX_CONSECUTIVE_FAILURES:
                raise
        else:
            result["channels"] += 1
            consecutive_failures = 0
        claim.note(result)
    return result


def _label_of(channel_id: int) -> str:
    channel = Channel.objects.select_related("guild").filter(pk=channel_id).first()
    return _("channel %(id)s", id=str(channel_id)) if channel is None else channel.full_name


def _in_turn(due: Sequence[int], *, now: dt.datetime) -> Iterator[tuple[int, tuple[int, bool]]]:
    """Yield (number of those before, (channel, whether it had deletes)) of the channels that a run probes.

    First those with deletes or with rows in the newest buckets, then others that have rows and were never probed, as
    far as is remembered.
    """
    since = bucket_at(unix_ms(now)) - RECENT_BUCKETS + 1
    idle: list[int] = []
    for start in range(0, len(due), CHANNELS_PER_CHECK):
        some = due[start : start + CHANNELS_PER_CHECK]
        with_deletes = set(_deletes(now).filter(channel_id__in=some).values_list("channel_id", flat=True))
        probed = set(_probed(some).values_list("channel_id", flat=True))
        newest = ledger.read_newest_buckets(some)
        for number, pk in enumerate(some, start):
            if pk in with_deletes or newest.get(pk, since - 1) >= since:
                yield number - len(idle), (pk, pk in with_deletes)
            elif pk in newest and pk not in probed:
                idle.append(pk)
    for number, pk in enumerate(idle, len(due) - len(idle)):
        yield number, (pk, False)


def _probed(channel_ids: Collection[int]) -> QuerySet[ChannelDay]:
    return ChannelDay.objects.filter(channel_id__in=channel_ids, read_ms__isnull=False)


def _probe_buckets(channel_id: int, *, now: dt.datetime) -> int:
    """Probe the buckets of a channel that had deletes; return how many."""
    rows = _deletes(now).filter(channel_id=channel_id).values("bucket").annotate(number=Sum("deletes"))
    found = list(rows.order_by("-number", "-bucket").values_list("bucket", "number")[:MAX_BUCKETS_PER_CHANNEL])
    for bucket, number in found:
        probe_bucket(channel_id, bucket, whole=number >= FULL_READ_MIN_DELETES)
    return len(found)


def _deletes(now: dt.datetime) -> QuerySet[BucketDeletes]:
    return BucketDeletes.objects.filter(last_at__gte=now - RECENT_DELETES_WINDOW)
