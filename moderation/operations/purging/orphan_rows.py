"""Deletion of rows without an author, which an edit that raced a delete leaves. Readers hide them.

A row is deleted if a quorum read finds no author and its youngest cell is over a day old, so that no insert can still
arrive. It is deleted at that cell's own WRITETIME, so that a later insert survives. Candidates come from whole reads
of buckets with deletes, which count such rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.conf import settings

from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID, WRITETIME
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.bucket_jobs.nightly_ledger import channel_of
from chatstore.operations.coordination.channel_lock import ChannelLocked, lock_channel, release_channel, renew_lock
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.jobs.runs import Claim
from chatstore.operations.ledger.delete_log import due_buckets, note_deletes
from chatstore.operations.ledger.refresh import refresh_bucket
from chatstore.store import counters, figures, scans
from moderation.operations.access.audit import record_action
from moderation.operations.steps.claiming import brief_transaction
from moderation.store import deletes
from moderation.store.pace import Pace

DAY_US = 86_400_000_000

BUCKETS_PER_NIGHT = 20_000

LEASE_SECONDS = 120.0
"""Lease of the channel lock, so that it expires if the worker is killed. A page of a read takes seconds at most."""

IDS_IN_AUDIT = 100


def delete_authorless(claim: Claim) -> Mapping[str, int]:
    """Delete authorless rows in the buckets that are known to have any; return counts by name.

    In every channel, or in the one that is the run's subject. Raises `StoreUnavailable`; deletes made until then
    persist, and the next run continues.
    """
    job = f"authorless:{claim.run.pk}"
    counts = {"deleted": 0, "too young": 0, "buckets": 0, "left for the next run": 0}
    due = list_authorless(channel_id=channel_of(claim))
    for number, (channel_id, bucket) in enumerate(due):
        claim.report_progress(done=number, total=len(due), what=_("buckets"))
        try:
            deleted, young = _delete_in(channel_id, bucket, job)
        except ChannelLocked:
            counts["left for the next run"] += 1
            continue
        counts["deleted"] += deleted
        counts["too young"] += young
        counts["buckets"] += 1
        claim.note(counts)
    return counts


def list_authorless(*, channel_id: int | None = None, limit: int = BUCKETS_PER_NIGHT) -> list[tuple[int, int]]:
    """Return (channel, bucket) pairs in which a whole read counted rows without an author."""
    wanted: dict[int, list[int]] = {}
    for its_channel, bucket, _hours in due_buckets(channel_id=channel_id, limit=limit):
        wanted.setdefault(its_channel, []).append(bucket)
    found = []
    for its_channel, buckets in wanted.items():
        measured = figures.read_figures(its_channel)
        found += [(its_channel, one) for one in buckets if one in measured and _has_authorless(measured[one])]
    return found


def _has_authorless(measured: Mapping[str, figures.Figure]) -> bool:
    counted = measured.get("authorless")
    return counted is not None and counted.value > 0


def _delete_in(channel_id: int, bucket: int, job: str) -> tuple[int, int]:
    """Return (rows deleted, rows too young) for a bucket, with its channel locked. Raises `ChannelLocked`."""

    def lock_or_raise(lock: Callable[..., bool]) -> None:
        if not lock(channel_id, job=job, lease_seconds=LEASE_SECONDS):
            raise ChannelLocked

    lock_or_raise(lock_channel)
    try:
        before_us = postgres_now_us() - DAY_US
        suspects: list[int] = []
        for page in scans.read_all_ids(channel_id, bucket):
            suspects.extend(message_id for message_id, author_id in page if author_id is None)
            lock_or_raise(renew_lock)
        # Read again with their stamps: rows that have an author by now are skipped.
        rows = [row for page in scans.read_rows_with_writetime(channel_id, bucket, suspects) for row in page]
        authorless = [(row[MESSAGE_ID], row[WRITETIME]) for row in rows if row[AUTHOR_ID] is None]
        old = [(message_id, stamp) for message_id, stamp in authorless if 0 < stamp < before_us]
        lock_or_raise(renew_lock)
        if old:
            _delete(channel_id, bucket, old)
        refresh_bucket(channel_id, bucket, job=job)
    finally:
        release_channel(channel_id, job=job)
    return len(old), len(authorless) - len(old)


def _delete(channel_id: int, bucket: int, rows: list[tuple[int, int]]) -> None:
    note_deletes(channel_id, bucket, len(rows))
    deletes.delete_rows(channel_id, bucket, [rows], pace=Pace(settings.PURGE_STATEMENTS_PER_SECOND))
    ids = [str(message_id) for message_id, _ in sorted(rows)[:IDS_IN_AUDIT]]
    with brief_transaction():
        details = {"bucket": bucket, "deleted": len(rows), "ids": ids}
        record_action("authorless_deleted", actor=None, channel_id=channel_id, details=details)
    counters.count(counters.HEALED, len(rows))
