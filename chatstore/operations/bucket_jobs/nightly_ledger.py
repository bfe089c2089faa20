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
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.jobs.runs import Claim
from chatstore.operations.ledger.delete_log import due_buckets, mark_looked_at
from chatstore.operations.ledger.refresh import Look, look_at_bucket
from chatstore.store import figures, ledger
from chatstore.store.figures import Figure
from chatstore.store.foreground import is_anybody_reading

ROUNDS = 3
"""Number of times a run returns to buckets whose channel was locked by another job."""

BUSY_PAUSE_SECONDS = 5.0

FAILURES_IN_A_ROW = 5
"""After this many consecutive failures the store is at fault, not a bucket."""

TO_THE_MILLISECOND = dt.timedelta(milliseconds=1)
"""Precision of a Cassandra timestamp column."""


@dataclass(frozen=True, slots=True)
class Due:
    """Bucket that had deletes, the last of which was sent by `sent_by`."""

    channel_id: int
    bucket: int
    sent_by: dt.datetime


@dataclass(slots=True)
class Books:
    """State of one run.

    buckets_read: buckets that this run read. already_known: buckets that a purge's own read had refreshed.
    """

    claim: Claim
    ends_at: float
    looked_at: int = 0
    found_empty: int = 0
    known_before: int = 0
    failed_in_a_row: int = 0
    rested_at: float = field(default_factory=time.monotonic)

    @property
    def job(self) -> str:
        return f"bookkeeping:{self.claim.run.pk}"

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.ends_at

    def did(self, left: int) -> dict[str, int]:
        return {
            "read": self.looked_at,
            "found empty": self.found_empty,
            "already up to date": self.known_before,
            "left for the next run": left,
        }

    def rest(self) -> None:
        """While users read pages, sleep `PURGE_REST` times as long as this run has worked since the last pause."""
        if is_anybody_reading():
            worked = time.monotonic() - self.rested_at
            time.sleep(min(worked * settings.PURGE_REST, BUSY_PAUSE_SECONDS))
        self.rested_at = time.monotonic()


def keep_books(claim: Claim) -> Mapping[str, int]:
    """Reconcile due buckets within `BOOKKEEPING_SECONDS` and `BOOKKEEPING_BUCKETS`; return counts by name.

    Covers all channels, or the one channel that is the run's subject.
    Raises `StoreUnavailable` if every read fails.
    """
    books = Books(claim, time.monotonic() + settings.BOOKKEEPING_SECONDS)
    left = list_due(settings.BOOKKEEPING_BUCKETS, channel_id=channel_of(claim))
    total = len(left)
    for number in range(ROUNDS):
        if number:
            if not left or books.is_over:
                break
            time.sleep(BUSY_PAUSE_SECONDS)
        left = _go_through(books, left, total)
    return books.did(len(left))


def channel_of(claim: Claim) -> int | None:
    """Return the channel named by the run's subject, or None. Raises `BadInput` if it is not an id."""
    return parse_snowflake(claim.run.subject) if claim.run.subject else None


def list_due(limit: int, *, channel_id: int | None = None) -> list[Due]:
    """Return sealed buckets, longest waiting first, then open ones.

    Of an open bucket only the lower bound can be recorded, so it is read every night until it is sealed.
    """
    first_open = bucket_at(postgres_now_us() // 1_000 - SEAL_AFTER_MS)
    sealed = due_buckets(channel_id=channel_id, before=first_open, limit=limit)
    unsealed = due_buckets(channel_id=channel_id, since=first_open, limit=limit - len(sealed))
    return [*_by_channel(sealed), *_by_channel(unsealed)]


def _by_channel(found: Sequence[tuple[int, int, dt.datetime]]) -> list[Due]:
    """Group buckets by channel, each group at the position of its longest-waiting bucket."""
    turns = {channel_id: turn for turn, channel_id in enumerate(dict.fromkeys(one[0] for one in found))}
    return [Due(*one) for one in sorted(found, key=lambda one: turns[one[0]])]


def _go_through(books: Books, due: Sequence[Due], total: int) -> list[Due]:
    """Return the buckets that are left: locked by another job, failed reads, or out of time."""
    left: list[Due] = []
    done = total - len(due)
    for number, (one, lives, kept) in enumerate(_with_what_is_known(due)):
        if books.is_over:
            return [*left, *due[number:]]
        books.claim.tell(done=done + number - len(left), total=total, what="buckets")
        books.claim.note(books.did(len(due) - number + len(left)))
        if is_known(one, lives.get(one.bucket), kept.get(one.bucket, {})):
            books.known_before += 1
            mark_looked_at(one.channel_id, one.bucket, began_at=one.sent_by)
        elif not _look(books, one):
            left.append(one)
    return left


def _with_what_is_known(
    due: Sequence[Due],
) -> Iterator[tuple[Due, Mapping[int, Live], Mapping[int, Mapping[str, Figure]]]]:
    """Yield each bucket with the ledger and figures of its channel, read when the channel comes up."""
    for channel_id, group in groupby(due, key=lambda one: one.channel_id):
        lives, kept = dict(ledger.read_ledger(channel_id)), figures.read_figures(channel_id)
        yield from ((one, lives, kept) for one in group)


def is_known(due: Due, live: Live | None, kept: Mapping[str, Figure]) -> bool:
    """Return whether a read that began after the last delete has refreshed the ledger completely.

    A bucket with rows without an author stays on the list until they are removed.
    """
    authorless = kept.get("authorless")
    return (
        live is not None
        and live.is_known
        and authorless is not None
        and authorless.value == 0
        # Only a read that refreshes the ledger records this figure.
        and authorless.measured_at + TO_THE_MILLISECOND > due.sent_by
    )


def _look(books: Books, due: Due) -> bool:
    try:
        look = look_at_bucket(due.channel_id, due.bucket, job=books.job, between_pages=books.rest)
    except StoreUnavailable:
        books.failed_in_a_row += 1
        if books.failed_in_a_row >= FAILURES_IN_A_ROW:
            raise
        return False
    books.failed_in_a_row = 0
    if look is None or ledger.read_live(due.channel_id, due.bucket) != look.live:
        # Locked by another job, or cleared within the last ten seconds; a later run refreshes it.
        return False
    books.looked_at += 1
    books.found_empty += look.live.is_nothing
    if _is_all_told(due, look):
        mark_looked_at(due.channel_id, due.bucket, began_at=look.read.measured_at)
    return True


def _is_all_told(due: Due, look: Look) -> bool:
    """Return whether the bucket needs no further read.

    An open bucket is read again when it is sealed; rows without an author wait for their removal.
    """
    sealed = is_sealed(due.bucket, now_ms=look.read.began_us // 1_000)
    return sealed and look.read.count == look.read.authored
