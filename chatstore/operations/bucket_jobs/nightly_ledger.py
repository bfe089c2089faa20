"""Nightly ledger reconciliation: re-reads buckets that had deletes and marks empty ones, so readers skip them.

Buckets are processed one by one, and each is marked once the ledger is up to date, so a run that was
stopped, killed or out of time continues there the next night. No channel is locked during a read or
a pause, and changes by another job take precedence.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from django.conf import settings

from chatstore.domain.buckets import SEAL_AFTER_MS, bucket_at, is_sealed
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.live import Live
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.jobs.runs import Claim
from chatstore.operations.ledger.delete_log import due_buckets, mark_reconciled
from chatstore.operations.ledger.refresh import BucketRead, try_refresh_bucket
from chatstore.store import figures, ledger
from chatstore.store.figures import Figure
from chatstore.store.foreground import are_pages_being_read

MAX_PASSES = 3
"""Number of times a run returns to buckets whose channel was locked by another job."""

BUSY_PAUSE_SECONDS = 5.0

MAX_CONSECUTIVE_FAILURES = 5
"""After this many consecutive failures the store is at fault, not a bucket."""

CASSANDRA_TIMESTAMP_PRECISION = dt.timedelta(milliseconds=1)
"""Precision of a Cassandra timestamp column."""


@dataclass(frozen=True, slots=True)
class DueBucket:
    """Bucket that had deletes, the last of which was sent by `sent_by`."""

    channel_id: int
    bucket: int
    sent_by: dt.datetime


@dataclass(slots=True)
class LedgerReconciliation:
    """State of one run.

    buckets_read: buckets that this run read. already_known: buckets that a purge's own read had refreshed.
    """

    claim: Claim
    ends_at: float
    buckets_read: int = 0
    found_empty: int = 0
    already_known: int = 0
    consecutive_failures: int = 0
    last_paused_at: float = field(default_factory=time.monotonic)

    @property
    def job(self) -> str:
        return f"bookkeeping:{self.claim.run.pk}"

    @property
    def is_out_of_time(self) -> bool:
        return time.monotonic() >= self.ends_at

    def result(self, left: int) -> dict[str, int]:
        return {
            "read": self.buckets_read,
            "found empty": self.found_empty,
            "already up to date": self.already_known,
            "left for the next run": left,
        }

    def pause(self) -> None:
        """Sleep for `PURGE_THROTTLE_FACTOR` times the time worked since the last pause, if users read pages."""
        if are_pages_being_read():
            worked = time.monotonic() - self.last_paused_at
            time.sleep(min(worked * settings.PURGE_THROTTLE_FACTOR, BUSY_PAUSE_SECONDS))
        self.last_paused_at = time.monotonic()


def reconcile_ledger(claim: Claim) -> Mapping[str, int]:
    """Reconcile due buckets within `BOOKKEEPING_SECONDS` and `BOOKKEEPING_BUCKETS`; return counts by name.

    Covers all channels, or the one channel that is the run's subject.
    Raises `StoreUnavailable` if every read fails.
    """
    reconciliation = LedgerReconciliation(claim, time.monotonic() + settings.BOOKKEEPING_SECONDS)
    left = list_due(settings.BOOKKEEPING_BUCKETS, channel_id=channel_of(claim))
    total = len(left)
    for number in range(MAX_PASSES):
        if number:
            if not left or reconciliation.is_out_of_time:
                break
            time.sleep(BUSY_PAUSE_SECONDS)
        left = _run_pass(reconciliation, left, total)
    return reconciliation.result(len(left))


def channel_of(claim: Claim) -> int | None:
    """Return the channel named by the run's subject, or None. Raises `BadInput` if it is not an id."""
    return parse_snowflake(claim.run.subject) if claim.run.subject else None


def list_due(limit: int, *, channel_id: int | None = None) -> list[DueBucket]:
    """Return sealed buckets, longest waiting first, then open ones.

    Of an open bucket only the lower bound can be recorded, so it is read every night until it is sealed.
    """
    first_open = bucket_at(postgres_now_us() // 1_000 - SEAL_AFTER_MS)
    sealed = due_buckets(channel_id=channel_id, before=first_open, limit=limit)
    unsealed = due_buckets(channel_id=channel_id, since=first_open, limit=limit - len(sealed))
    return [*_by_channel(sealed), *_by_channel(unsealed)]


def _by_channel(found: Sequence[tuple[int, int, dt.datetime]]) -> list[DueBucket]:
    """Group buckets by channel, each group at the position of its longest-waiting bucket."""
    order = {channel_id: turn for turn, channel_id in enumerate(dict.fromkeys(one[0] for one in found))}
    return [DueBucket(*one) for one in sorted(found, key=lambda one: order[one[0]])]


def _run_pass(reconciliation: LedgerReconciliation, due: Sequence[DueBucket], total: int) -> list[DueBucket]:
    """Return the buckets that are left: locked by another job, failed reads, or out of time."""
    left: list[DueBucket] = []
    done = total - len(due)
    for number, (one, lives, measured) in enumerate(_with_known_state(due)):
        if reconciliation.is_out_of_time:
            return [*left, *due[number:]]
        reconciliation.claim.report_progress(done=done + number - len(left), total=total, what=_("buckets"))
        reconciliation.claim.note(reconciliation.result(len(due) - number + len(left)))
        if is_up_to_date(one, lives.get(one.bucket), measured.get(one.bucket, {})):
            reconciliation.already_known += 1
            mark_reconciled(one.channel_id, one.bucket, began_at=one.sent_by)
        elif not _reconcile_bucket(reconciliation, one):
            left.append(one)
    return left


def _with_known_state(
    due: Sequence[DueBucket],
) -> Iterator[tuple[DueBucket, Mapping[int, Live], Mapping[int, Mapping[str, Figure]]]]:
    """Yield each bucket with the ledger and figures of its channel, read when the channel comes up."""
    for channel_id, group in groupby(due, key=lambda one: one.channel_id):
        lives, measured = dict(ledger.read_ledger(channel_id)), figures.read_figures(channel_id)
        yield from ((one, lives, measured) for one in group)


def is_up_to_date(due: DueBucket, live: Live | None, measured: Mapping[str, Figure]) -> bool:
    """Return whether a read that began after the last delete has refreshed the ledger completely.

    A bucket with rows without an author stays on the list until they are deleted.
    """
    authorless = measured.get("authorless")
    return (
        live is not None
        and live.is_known
        and authorless is not None
        and authorless.value == 0
        # Only a read that refreshes the ledger records this figure.
        and authorless.measured_at + CASSANDRA_TIMESTAMP_PRECISION > due.sent_by
    )


def _reconcile_bucket(reconciliation: LedgerReconciliation, due: DueBucket) -> bool:
    try:
        bucket_read = try_refresh_bucket(
            due.channel_id, due.bucket, job=reconciliation.job, between_pages=reconciliation.pause
        )
    except StoreUnavailable:
        reconciliation.consecutive_failures += 1
        if reconciliation.consecutive_failures >= MAX_CONSECUTIVE_FAILURES:
            raise
        return False
    reconciliation.consecutive_failures = 0
    if bucket_read is None or ledger.read_live(due.channel_id, due.bucket) != bucket_read.live:
        # Locked by another job, or cleared within the last ten seconds; a later run refreshes it.
        return False
    reconciliation.buckets_read += 1
    reconciliation.found_empty += bucket_read.live.is_empty
    if _is_reconciled(due, bucket_read):
        mark_reconciled(due.channel_id, due.bucket, began_at=bucket_read.read.measured_at)
    return True


def _is_reconciled(due: DueBucket, bucket_read: BucketRead) -> bool:
    """Return whether the bucket needs no further read.

    An open bucket is read again when it is sealed; rows without an author wait for their removal.
    """
    sealed = is_sealed(due.bucket, now_ms=bucket_read.read.began_us // 1_000)
    return sealed and bucket_read.read.count == bucket_read.read.authored
