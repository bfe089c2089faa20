"""Ledger refresh: count the live rows of a bucket and store the result in the bucket ledger.

Only the job that has locked the channel may write the result, or two jobs could overwrite each other. It checks its
lock after it has taken the timestamp of its read: its result is then older than any clear by a job that locks the
channel later, even if it is suspended before it writes. One quorum read of the whole bucket decides. A message that
is posted late in the meantime clears the ledger row, and its clear wins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from chatstore.domain.buckets import BucketKey
from chatstore.domain.errors import StoreUnavailable, WriteRefused
from chatstore.domain.live import Live
from chatstore.domain.whole_reads import WholeRead
from chatstore.operations.coordination.channel_lock import lock_channel, lock_owner, release_channel, renew_lock
from chatstore.operations.coordination.clock import stamp_now_us
from chatstore.operations.ledger.summaries import mark_due
from chatstore.store import figures, ledger, loads, messages, scans

SOURCE = "own read"
PURGE_SOURCE = "purge"
"""Source of figures from the read that verifies a purge's deletes in a bucket."""

PURGE_ESTIMATE = "purge estimate"
"""Source of the most tombstones that a bucket can have: those counted before, and one for each row deleted since."""

LEDGER_WRITE_LEASE_SECONDS = 15.0
"""Lease on the channel while the ledger is written; longer than the timeout of a statement."""


def note_whole_read(channel_id: int, bucket: int, read: WholeRead) -> Live:
    """Write the result of a whole-bucket read to the ledger. The caller's job has locked the channel."""
    live = read.live(bucket)
    ledger.set_live(channel_id, bucket, live, read_began_us=read.began_us)
    return live


def note_whole_reads(reads: Mapping[BucketKey, WholeRead], *, began_us: int) -> None:
    """Write the results of whole-bucket reads to the ledger. The caller's job has locked the channels.

    began_us: Postgres's clock (µs) before the first of the reads. The job still had the locks after that.
    """
    bounds = {(channel_id, bucket): read.live(bucket) for (channel_id, bucket), read in reads.items()}
    loads.set_live_in(bounds, read_began_us=began_us)


def refresh_bucket(channel_id: int, bucket: int, *, job: str) -> Live:
    """Read a whole bucket, write its live range to the ledger and record its number of messages.

    Raises `WriteRefused` unless `job` has locked the channel, or if a clock is off.
    """
    read = WholeRead(stamp_now_us())
    if lock_owner(channel_id) != job:
        raise WriteRefused(f"channel {channel_id} is not locked by the job that is refreshing its ledger")
    for rows in messages.read_ids(channel_id, bucket):
        read.add(rows)
    live = note_whole_read(channel_id, bucket, read)
    figures.note_figures(channel_id, bucket, read.figures, source=SOURCE, measured_at=read.measured_at)
    mark_due([channel_id])
    return live


@dataclass(frozen=True, slots=True)
class BucketRead:
    """Result of reading a bucket: the read, and the ledger entry that it produced."""

    read: WholeRead
    live: Live


def try_refresh_bucket(
    channel_id: int, bucket: int, *, job: str, between_pages: Callable[[], None] = lambda: None
) -> BucketRead | None:
    """Read a whole bucket of a channel that no other job has locked, refresh its ledger row and record figures.

    Any job may lock the channel during the read without waiting; the result of the read is then discarded.
    The channel is locked only while the ledger is written. Return None if another job has, or had, the
    channel. Raises `WriteRefused` if a clock is off.
    """
    if not lock_channel(channel_id, job=job, lease_seconds=0):
        return None
    try:
        read = WholeRead(stamp_now_us())
        pages = scans.read_all_ids(channel_id, bucket)
        for rows in pages:
            read.add(rows)
            between_pages()
        if not renew_lock(channel_id, job=job, lease_seconds=LEDGER_WRITE_LEASE_SECONDS):
            return None
        live = note_whole_read(channel_id, bucket, read)
    finally:
        release_channel(channel_id, job=job)
    seen = dict(read.figures)
    with suppress(StoreUnavailable):
        # The trace did not arrive, so the count is unknown and is not recorded.
        seen["tombstones"] = pages.count_tombstones()
    figures.note_figures(channel_id, bucket, seen, source=SOURCE, measured_at=read.measured_at)
    mark_due([channel_id])
    return BucketRead(read, live)
