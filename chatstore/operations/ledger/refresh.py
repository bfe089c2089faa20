"""Empty-bucket bookkeeping: what lives in a bucket is counted and the ledger told.

Only a job that holds the channel may, or two could overtake each other. One quorum read
of the whole bucket decides; what was posted late meanwhile clears the ledger and wins.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from chatstore.domain.errors import StoreUnavailable, WriteRefused
from chatstore.domain.live import Live
from chatstore.domain.whole_reads import WholeRead
from chatstore.operations.coordination.channel_lock import hold_channel, holder_of, release_channel, renew_hold
from chatstore.operations.coordination.clock import stamp_now_us
from chatstore.store import figures, ledger, messages, scans

SOURCE = "own read"

TELL_SECONDS = 15.0
"""How long a look holds the channel to tell the ledger: longer than a statement is waited for."""


def note_whole_read(channel_id: int, bucket: int, read: WholeRead) -> Live:
    """Tell the ledger what a whole read of the bucket allows it to say. The caller's job holds the channel."""
    live = read.live(bucket)
    ledger.set_live(channel_id, bucket, live, read_began_us=read.began_us)
    return live


def settle_bucket(channel_id: int, bucket: int, *, job: str | None = None) -> Live:
    """Read a whole bucket, tell the ledger what lives there and note how many messages.

    Raises `WriteRefused` unless the channel is held (by `job`, where it is named), and while a clock is off.
    """
    holder = holder_of(channel_id)
    if holder is None or job not in (None, holder):
        raise WriteRefused(f"channel {channel_id} is not held by the job that would settle its ledger")
    read = WholeRead(stamp_now_us())
    for rows in messages.read_ids(channel_id, bucket):
        read.add(rows)
    live = note_whole_read(channel_id, bucket, read)
    figures.note_figures(channel_id, bucket, read.figures, source=SOURCE, measured_at=read.measured_at)
    return live


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a bucket saw, and what the ledger says of it now."""

    read: WholeRead
    live: Live


def look_at_bucket(
    channel_id: int, bucket: int, *, job: str, between_pages: Callable[[], None] = lambda: None
) -> Look | None:
    """Reads a whole bucket of a channel that no other job holds, tells the ledger and notes figures.

    While it reads, any job may take the channel, which waits for nothing then: what was seen is
    thrown away. The channel is held for the telling alone. None when it is, or was, another job's.
    Raises `WriteRefused` while a clock is off.
    """
    if not hold_channel(channel_id, job=job, lease_seconds=0):
        return None
    try:
        read = WholeRead(stamp_now_us())
        pages = scans.read_all_ids(channel_id, bucket)
        for rows in pages:
            read.add(rows)
            between_pages()
        if not renew_hold(channel_id, job=job, lease_seconds=TELL_SECONDS):
            return None
        live = note_whole_read(channel_id, bucket, read)
    finally:
        release_channel(channel_id, job=job)
    seen = dict(read.figures)
    with suppress(StoreUnavailable):
        # A trace that did not arrive: what is unknown is not noted.
        seen["tombstones"] = pages.count_tombstones()
    figures.note_figures(channel_id, bucket, seen, source=SOURCE, measured_at=read.measured_at)
    return Look(read, live)


def settle_channel(channel_id: int, *, job: str) -> int:
    """Settle every bucket of which the ledger knows no count; gives how many."""
    buckets = [bucket for bucket, live in ledger.read_ledger(channel_id) if not live.is_known]
    for bucket in buckets:
        settle_bucket(channel_id, bucket, job=job)
    return len(buckets)
