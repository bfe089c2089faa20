"""The cost of the audit log: purges beside its hash chain, and the share of a purge that recording it takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection

from chatstore.models.users import User
from chatstore.operations.coordination.leases import renewed
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.access.audit_chain import link_entries, newest_anchor
from moderation.operations.purging.lifecycle import confirm_purge
from moderation.operations.purging.worker import run_purge
from moderation.tasks import link_audit_entries
from tests.bench.bench_stack import seconds_of_purge, seconds_of_undo
from tests.bench.channel_pool import ChannelPool, all_but_oldest, scan
from tests.bench.channels import fill_channel, settle
from tests.bench.report import Figures
from tests.bench.scattered import preview_of
from tests.bench.scattered_messages import ScatteredMessages

DENSE = 30_000
"""Messages of the purge of one channel."""

CHANNELS = 20
"""Channels of the scattered purge, each with ten buckets: 4,000 messages, and 20 entries besides those of any purge."""

PAIRS_SECONDS = 35.0
"""Time after which no pair begins, once there are as many as runs."""

LINK_SECONDS = 1.0
"""Interval of the linker: ten times as often as in production, because a pair of purges takes two seconds."""


def measure_audit(pool: ChannelPool, *, runs: int) -> Figures:
    """Yield the time of purges while a worker links the entries of the audit log, as a multiple of that without it.

    Each pair is a purge of one channel and a scattered one with the linker, and the same without it, in alternating
    order: the ratio is the median of the pairs, and its spread is the lowest and the highest one. Then the shares of a
    purge's time in Postgres, and of its processor time, that the statements take which insert entries, in percent.
    """
    scattered = ScatteredMessages(channels=CHANNELS)
    scattered.fill()
    settle()
    # The first preview counts the tombstones of every bucket.
    seconds_of_both(pool.moderator, scattered)
    pairs: list[float] = []
    end = time.monotonic() + PAIRS_SECONDS
    for number in range(2 * runs - 1):
        if number >= runs and time.monotonic() > end:
            break
        taken: dict[bool, float] = {}
        for is_linked in (True, False) if number % 2 == 0 else (False, True):
            while link_entries():
                pass
            with linking() if is_linked else not_linking():
                taken[is_linked] = seconds_of_both(pool.moderator, scattered)
        pairs.append(taken[True] / taken[False])
    yield "purge_beside_audit_chain", statistics.median(pairs)
    yield "purge_beside_audit_chain_lowest", min(pairs)
    yield "purge_beside_audit_chain_highest", max(pairs)
    dense = count_recording(pool.moderator, scan(pool.moderator, all_but_oldest(fill_channel(DENSE))))
    yield "audit_percent_of_dense_postgres", dense.percent_of_postgres
    yield "audit_percent_of_dense_processor", dense.percent_of_processor
    spread = count_recording(pool.moderator, preview_of(pool.moderator, scattered.purged)[0])
    yield "audit_percent_of_scattered_postgres", spread.percent_of_postgres
    yield "audit_percent_of_scattered_processor", spread.percent_of_processor


def seconds_of_both(moderator: User, scattered: ScatteredMessages) -> float:
    """Return the seconds of a purge of one channel and of a scattered one, which is undone afterwards."""
    dense = seconds_of_purge(moderator, scan(moderator, all_but_oldest(fill_channel(DENSE))))
    purge, _ = preview_of(moderator, scattered.purged)
    taken = seconds_of_purge(moderator, purge)
    seconds_of_undo(moderator, purge)
    return dense + taken


@contextmanager
def linking() -> Iterator[None]:
    """Enqueue the task that links entries, as beat does. Raises `RuntimeError` if no worker linked any."""
    before = newest_anchor()
    with renewed(lambda: link_audit_entries.apply_async(expires=LINK_SECONDS), every_seconds=LINK_SECONDS):
        yield
    # The last one is executed now, since no purge is left, or has expired.
    time.sleep(LINK_SECONDS)
    if newest_anchor() == before:
        raise RuntimeError("no entry of the audit log was linked meanwhile")


@contextmanager
def not_linking() -> Iterator[None]:
    """Raise `RuntimeError` if entries were linked all the same."""
    before = newest_anchor()
    yield
    if newest_anchor() != before:
        raise RuntimeError("entries of the audit log were linked meanwhile")


@dataclass(slots=True)
class Recording:
    """Seconds of a purge in Postgres, and of processor time of this process; of these, recording audit entries.

    entries: number of statements that insert some.
    """

    postgres: float = 0.0
    processor: float = 0.0
    audit_postgres: float = 0.0
    audit_processor: float = 0.0
    entries: int = 0

    @property
    def percent_of_postgres(self) -> float:
        """Share of the time in Postgres."""
        return 100 * self.audit_postgres / self.postgres

    @property
    def percent_of_processor(self) -> float:
        """Share of the processor time."""
        return 100 * self.audit_processor / self.processor

    def count(
        self,
        execute: Callable[..., Any],
        sql: str,
        params: Any,
        many: bool,
        context: Any,
    ) -> Any:
        """Execute a statement, and count it."""
        began, processor = time.perf_counter(), time.thread_time()
        try:
            return execute(sql, params, many, context)
        finally:
            taken = time.perf_counter() - began
            self.postgres += taken
            if "INSERT INTO" in sql and AuditEntry._meta.db_table in sql:
                self.audit_postgres += taken
                self.audit_processor += time.thread_time() - processor
                self.entries += 1


def count_recording(moderator: User, purge: Purge) -> Recording:
    """Confirm and run a purge in this process, from the confirmation to its end."""
    found = Recording()
    began = time.process_time()
    with connection.execute_wrapper(found.count):
        manifest_hash = bytes(purge.manifest_hash or b"")
        confirm_purge(purge.pk, moderator=moderator, reason="bench", manifest_hash=manifest_hash)
        ended = run_purge(purge.pk, idle_timeout_seconds=60)
    found.processor = time.process_time() - began
    if ended.state != PurgeState.DONE or not found.entries:
        raise RuntimeError(f"the purge is {ended.state}, with {found.entries} statements that record it")
    return found
