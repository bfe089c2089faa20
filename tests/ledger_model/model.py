"""A model of one channel in memory: cells with write timestamps, a ledger, a lock, and a manually set clock.

The decisions are the product's own (`Rules`). The model replaces Cassandra: the newest timestamp wins, a delete wins
over a write of the same timestamp, each statement is atomic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from chatstore.domain.buckets import bucket_ids, bucket_of, is_late
from chatstore.domain.live import Live, LiveTuple, stamp_of_live
from chatstore.domain.slices import cut_slices
from chatstore.domain.snowflakes import EPOCH_MS, MAX_ID, MIN_ID
from chatstore.domain.whole_reads import WholeRead

BUCKETS = (-2, -1, 0)
"""The first is sealed, the second is about to be, the third is open; ids on both sides of zero."""

SKEW_SECONDS = 10
"""The minimum of `CLOCK_SKEW_SECONDS`."""

LEASE_US = 30_000_000
AUTHOR = 7

CLEARED: LiveTuple = (None, None, None)


@dataclass(frozen=True)
class Rules:
    """The product's decisions. Tests replace each of them with a wrong one."""

    is_late: Callable[..., bool] = is_late
    live_of: Callable[[WholeRead, int], Live] = WholeRead.live
    stamp_of_live: Callable[..., int] = stamp_of_live
    row_comes_first: bool = True
    clears_before: bool = True
    clears_after: bool = True
    rechecks_lateness: bool = True
    checks_lock: bool = True


@dataclass(eq=False)
class Write:
    """A write in progress. is_done: its caller got a success.

    is_excused: a whole read started meanwhile, which may miss an unfinished write.
    """

    is_done: bool = False
    is_abandoned: bool = False
    is_excused: bool = False


@dataclass
class ChannelModel:
    """The state of the channel. now_us: Postgres's clock; a process's own differs by its skew."""

    rules: Rules
    now_us: int
    rows: dict[int, int] = field(default_factory=dict)
    writers: dict[int, Write] = field(default_factory=dict)
    deletes: list[tuple[int, int, int]] = field(default_factory=list)
    ledger: dict[int, tuple[LiveTuple, int]] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)
    stamps: dict[int, int] = field(default_factory=dict)
    lock_owner: tuple[str, int | None] | None = None
    in_flight: list[Write] = field(default_factory=list)
    sent: list[Callable[[], None]] = field(default_factory=list)
    jobs: int = 0

    # --- clocks and the channel

    def wall_us(self, skew_us: int) -> int:
        """Return the time of a process's own clock."""
        return self.now_us + skew_us

    def wall_ms(self, skew_us: int) -> int:
        return self.wall_us(skew_us) // 1_000

    def issue(self, bucket: int) -> int:
        """Return max(Postgres now, the bucket's last timestamp + 1)."""
        self.stamps[bucket] = max(self.now_us, self.stamps.get(bucket, 0) + 1)
        return self.stamps[bucket]

    def name_job(self, kind: str) -> str:
        """Return a unique job name. An object's address would not do, because it is reused."""
        self.jobs += 1
        return f"{kind}:{self.jobs}"

    def lock(self, job: str, lease_us: int | None) -> bool:
        """Model `lock_channel`: succeeds if the channel is free, locked by the same job, or its lease has lapsed."""
        if self.lock_owner is not None:
            other, until = self.lock_owner
            if other != job and (until is None or until >= self.now_us):
                return False
        self.lock_owner = (job, None if lease_us is None else self.now_us + lease_us)
        return True

    def renew(self, job: str) -> bool:
        if self.lock_owner is None or self.lock_owner[0] != job:
            return False
        self.lock_owner = (job, self.now_us + LEASE_US)
        return True

    def release(self, job: str) -> None:
        if self.lock_owner is not None and self.lock_owner[0] == job:
            self.lock_owner = None

    # --- messages

    def insert(self, message_id: int, stamp: int, write: Write) -> None:
        if stamp > self.rows.get(message_id, stamp - 1):
            self.rows[message_id] = stamp
            self.writers[message_id] = write

    def insert_again(self, message_id: int, stamp: int) -> None:
        """Rewrite a survivor; its writer stays the original one."""
        self.rows[message_id] = max(stamp, self.rows.get(message_id, stamp))

    def delete(self, first: int, last: int, stamp: int) -> None:
        self.deletes.append((first, last, stamp))

    def lives(self, message_id: int) -> bool:
        stamp = self.rows.get(message_id)
        return stamp is not None and all(
            stamp > deleted for first, last, deleted in self.deletes if first <= message_id <= last
        )

    def living(self, bucket: int | None = None) -> list[int]:
        """Return the live ids, ascending."""
        return [one for one in sorted(self.rows) if bucket in (None, bucket_of(one)) and self.lives(one)]

    # --- the ledger

    def ensure_row(self, bucket: int) -> None:
        self.ledger.setdefault(bucket, (CLEARED, 0))

    def clear(self, bucket: int, skew_us: int) -> None:
        self.clear_at(bucket, self.wall_us(skew_us))

    def clear_at(self, bucket: int, stamp: int) -> None:
        self._set_ledger(bucket, CLEARED, stamp)

    def set_live(self, bucket: int, read: WholeRead) -> None:
        """Update the ledger; a slow process may send the update again, much later."""
        live = self.rules.live_of(read, bucket).as_tuple()
        stamp = self.rules.stamp_of_live(read_began_us=read.began_us, skew_seconds=SKEW_SECONDS)
        self.send(lambda: self._set_ledger(bucket, live, stamp))

    def _set_ledger(self, bucket: int, live: LiveTuple, stamp: int) -> None:
        # Of two values with one timestamp Cassandra keeps the larger one; nulls are the largest.
        old, old_stamp = self.ledger.get(bucket, (CLEARED, stamp - 1))
        if stamp > old_stamp or (stamp == old_stamp and live == CLEARED != old):
            self.ledger[bucket] = (live, stamp)

    def begin_whole_read(self) -> WholeRead:
        for write in self.in_flight:
            write.is_excused = True
        return WholeRead(self.now_us)

    # --- late statements

    def send(self, statement: Callable[[], None]) -> None:
        """Execute a job's statement; a paused worker may send it once more."""
        self.sent.append(statement)
        statement()

    # --- invariants

    def hidden(self) -> list[int]:
        """Return live messages that the reader would skip although their writers got a success.

        Include those of interrupted writers, unless a whole read was in progress at the same time.
        """
        ledger = [(bucket, Live.from_tuple(live)) for bucket, (live, _) in self.ledger.items()]
        slices = cut_slices(ledger, low=MIN_ID, high=MAX_ID)
        found = []
        for message_id in self.living():
            write = self.writers[message_id]
            is_seen = any(
                part.bucket == bucket_of(message_id) and part.low <= message_id <= part.high for part in slices
            )
            if not is_seen and (write.is_done or not write.is_excused):
                found.append(message_id)
        return found


def end_of(bucket: int) -> int:
    """Return the Unix millisecond at which a bucket's window ends."""
    return (bucket_ids(bucket)[1] >> 22) + 1 + EPOCH_MS


def rows_of(ids: Iterable[int]) -> list[tuple[int, int | None]]:
    """Return rows as in a page of a read, newest first."""
    return [(message_id, AUTHOR) for message_id in sorted(ids, reverse=True)]
