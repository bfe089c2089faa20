"""Empty-bucket bookkeeping: what lives in a bucket is counted and the ledger told.

Only a job that holds the channel may, or two could overtake each other. One quorum read
of the whole bucket decides; what was posted late meanwhile clears the ledger and wins.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from chatstore.domain.buckets import is_sealed
from chatstore.domain.errors import WriteRefused
from chatstore.domain.live import Live, live_from_read
from chatstore.domain.snowflakes import first_id_at
from chatstore.operations.channel_lock import holder_of
from chatstore.operations.clock import postgres_now_us
from chatstore.store import figures, ledger, messages

SETTLED_MS = 3_600_000
"""An open bucket's `from` is at most the id of an hour before: newer posts take no marking path."""

SOURCE = "own read"


@dataclass(slots=True)
class WholeRead:
    """What one quorum read of a whole bucket saw. began_us: Postgres's clock (µs) before it began.

    count: all rows; authored: those that have their author, which are the messages.
    """

    began_us: int
    lowest: int | None = None
    highest: int | None = None
    count: int = 0
    authored: int = 0

    @property
    def measured_at(self) -> dt.datetime:
        """When the read began, as figures note it."""
        return dt.datetime.fromtimestamp(self.began_us / 1e6, tz=dt.UTC)

    def add(self, rows: Sequence[tuple[int, int | None]]) -> None:
        """A page of (message id, author id), newest first; pages come newest first as well."""
        if not rows:
            return
        self.highest = rows[0][0] if self.highest is None else self.highest
        self.lowest = rows[-1][0]
        self.count += len(rows)
        self.authored += sum(1 for _, author_id in rows if author_id is not None)


def note_whole_read(channel_id: int, bucket: int, read: WholeRead) -> Live:
    """Tell the ledger what a whole read of the bucket allows it to say. The caller's job holds the channel."""
    now_ms = read.began_us // 1000
    # Rows without an author count here: maintenance must find them, and an insert may
    # still be on its way to one.
    live = live_from_read(
        read.lowest,
        read.highest,
        read.count,
        sealed=is_sealed(bucket, now_ms=now_ms),
        settled_before=first_id_at(now_ms - SETTLED_MS),
    )
    ledger.set_live(channel_id, bucket, live, read_began_us=read.began_us)
    return live


def settle_bucket(channel_id: int, bucket: int, *, job: str | None = None) -> Live:
    """Read a whole bucket, tell the ledger what lives there and note how many messages.

    Raises `WriteRefused` unless the channel is held (by `job`, where it is named).
    """
    holder = holder_of(channel_id)
    if holder is None or job not in (None, holder):
        raise WriteRefused(f"channel {channel_id} is not held by the job that would settle its ledger")
    read = WholeRead(postgres_now_us())
    for rows in messages.read_ids(channel_id, bucket):
        read.add(rows)
    live = note_whole_read(channel_id, bucket, read)
    figures.note_figures(channel_id, bucket, {"live_rows": read.authored}, source=SOURCE, measured_at=read.measured_at)
    return live


def settle_channel(channel_id: int, *, job: str) -> int:
    """Settle every bucket of which the ledger knows no count; gives how many."""
    buckets = [bucket for bucket, live in ledger.read_ledger(channel_id) if not live.is_known]
    for bucket in buckets:
        settle_bucket(channel_id, bucket, job=job)
    return len(buckets)
