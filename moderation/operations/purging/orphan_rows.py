"""Rows without an author: an edit that raced a delete left them. Readers hide them; here they go.

A row is removed when a quorum sees it without its author and its youngest cell is over a day old,
so that no insert can still be on its way to it; at that cell's own WRITETIME, so that one which
is all the same survives. Where to look is what whole reads of buckets with deletes have counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.conf import settings

from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID, WRITETIME
from chatstore.operations.bucket_jobs.nightly_ledger import channel_of
from chatstore.operations.coordination.channel_lock import hold_channel, release_channel, renew_hold
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.jobs.runs import Claim
from chatstore.operations.ledger.delete_log import due_buckets, note_deletes
from chatstore.operations.ledger.refresh import settle_bucket
from chatstore.store import counters, figures, scans
from moderation.operations.access.audit import record_act
from moderation.operations.steps.claiming import brief_transaction
from moderation.store import deletes
from moderation.store.pace import Pace

DAY_US = 86_400_000_000

BUCKETS_A_NIGHT = 20_000

LEASE_SECONDS = 120.0
"""A killed worker's hold of a channel lapses; a page of a read takes seconds at the most."""

IDS_IN_AUDIT = 100


class ChannelTaken(Exception):
    """Another job has the channel."""


def remove_authorless(claim: Claim) -> Mapping[str, int]:
    """Goes through the buckets that are known to have such rows; what it did, by name.

    Of every channel, or of the one that is the run's subject.
    Raises `StoreUnavailable`; what was removed by then stays so, and the next run goes on.
    """
    job = f"authorless:{claim.run.pk}"
    did = {"removed": 0, "too young": 0, "buckets": 0, "left for the next time": 0}
    due = list_authorless(channel_id=channel_of(claim))
    for number, (channel_id, bucket) in enumerate(due):
        claim.tell(done=number, total=len(due), what="buckets")
        try:
            removed, young = _remove_in(channel_id, bucket, job)
        except ChannelTaken:
            did["left for the next time"] += 1
            continue
        did["removed"] += removed
        did["too young"] += young
        did["buckets"] += 1
        claim.note(did)
    return did


def list_authorless(*, channel_id: int | None = None, limit: int = BUCKETS_A_NIGHT) -> list[tuple[int, int]]:
    """(channel, bucket) in which a whole read has counted rows without an author."""
    wanted: dict[int, list[int]] = {}
    for its_channel, bucket, _ in due_buckets(channel_id=channel_id, limit=limit):
        wanted.setdefault(its_channel, []).append(bucket)
    found = []
    for its_channel, buckets in wanted.items():
        kept = figures.read_figures(its_channel)
        found += [(its_channel, one) for one in buckets if one in kept and _has_authorless(kept[one])]
    return found


def _has_authorless(kept: Mapping[str, figures.Figure]) -> bool:
    counted = kept.get("authorless")
    return counted is not None and counted.value > 0


def _remove_in(channel_id: int, bucket: int, job: str) -> tuple[int, int]:
    """(rows removed, rows too young) of a bucket, its channel held meanwhile. Raises `ChannelTaken`."""

    def keep_channel(hold: Callable[..., bool]) -> None:
        if not hold(channel_id, job=job, lease_seconds=LEASE_SECONDS):
            raise ChannelTaken

    keep_channel(hold_channel)
    try:
        before_us = postgres_now_us() - DAY_US
        suspects: list[int] = []
        for page in scans.read_all_ids(channel_id, bucket):
            suspects.extend(message_id for message_id, author_id in page if author_id is None)
            keep_channel(renew_hold)
        # Read again with their stamps: who has an author by now is no longer one of them.
        rows = [row for page in scans.read_rows_with_writetime(channel_id, bucket, suspects) for row in page]
        authorless = [(row[MESSAGE_ID], row[WRITETIME]) for row in rows if row[AUTHOR_ID] is None]
        old = [(message_id, stamp) for message_id, stamp in authorless if 0 < stamp < before_us]
        keep_channel(renew_hold)
        if old:
            _remove(channel_id, bucket, old)
        settle_bucket(channel_id, bucket, job=job)
    finally:
        release_channel(channel_id, job=job)
    return len(old), len(authorless) - len(old)


def _remove(channel_id: int, bucket: int, rows: list[tuple[int, int]]) -> None:
    note_deletes(channel_id, bucket, len(rows))
    deletes.delete_rows(channel_id, bucket, [rows], pace=Pace(settings.PURGE_STATEMENTS_PER_SECOND))
    ids = [str(message_id) for message_id, _ in sorted(rows)[:IDS_IN_AUDIT]]
    with brief_transaction():
        details = {"bucket": bucket, "removed": len(rows), "ids": ids}
        record_act("authorless_removed", actor=None, channel_id=channel_id, details=details)
    counters.count(counters.HEALED, len(rows))
