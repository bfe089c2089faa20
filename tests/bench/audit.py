"""The cost of the audit log: of linking its hash chain, and the share of a purge that recording it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil
from django.conf import settings
from django.db import connection

from chatstore.models.users import User
from devstack import cassandra, postgres
from devstack.processes import find_process
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.access.audit_chain import link_entries
from moderation.operations.purging.lifecycle import confirm_purge
from moderation.operations.purging.worker import run_purge
from tests.bench.bench_stack import seconds_of_purge, seconds_of_undo
from tests.bench.channel_pool import ChannelPool, all_but_oldest, scan
from tests.bench.channels import fill_channel, settle
from tests.bench.report import Figures
from tests.bench.scattered import preview_of
from tests.bench.scattered_messages import ScatteredMessages
from tests.processes import processor_seconds_of

DENSE = 30_000
"""Messages of the purge of one channel."""

MIN_PAIRS = 5
"""Pairs of purges at least: linking the entries of one takes a few milliseconds."""

CHANNELS = 20
"""Channels of the scattered purge, each with ten buckets: 4,000 messages, and 20 entries besides those of any purge."""


def measure_audit(pool: ChannelPool, *, runs: int) -> Figures:
    """Yield the processor time of purges and of linking their entries, as a multiple of that of the purges alone.

    Purges are CPU-bound, so they take as much longer beside the linker at most. Their time itself differs by up to a
    third from one pair to the next, so that 25 pairs with and without the linker could not show two percent. The linker
    runs after each pair of a purge of one channel and a scattered one: about five times as often as in production.

    Then the shares of a purge's time in Postgres, and of its processor time, that the statements take which insert
    entries, in percent.
    """
    scattered = ScatteredMessages(channels=CHANNELS)
    scattered.fill()
    settle()
    # The first preview counts the tombstones of every bucket.
    costs_of_both(pool.moderator, scattered)
    costs = [costs_of_both(pool.moderator, scattered) for _ in range(max(runs, MIN_PAIRS))]
    purging, linking = (sum(side) for side in zip(*costs, strict=True))
    yield "purge_with_audit_chain", (purging + linking) / purging
    dense = count_recording(pool.moderator, scan(pool.moderator, all_but_oldest(fill_channel(DENSE))))
    yield "audit_percent_of_dense_postgres", dense.percent_of_postgres
    yield "audit_percent_of_dense_processor", dense.percent_of_processor
    spread = count_recording(pool.moderator, preview_of(pool.moderator, scattered.purged)[0])
    yield "audit_percent_of_scattered_postgres", spread.percent_of_postgres
    yield "audit_percent_of_scattered_processor", spread.percent_of_processor


def costs_of_both(moderator: User, scattered: ScatteredMessages) -> tuple[float, float]:
    """Return the processor time of a purge of one channel and a scattered one, and of linking their entries (seconds).

    The scattered one is undone afterwards. Raises `RuntimeError` if nothing was linked.
    """
    dense = scan(moderator, all_but_oldest(fill_channel(DENSE)))
    purge, _ = preview_of(moderator, scattered.purged)
    while link_entries():
        pass
    # The first one is this process, with the Celery workers that it started; Cassandra has no part in linking.
    processes = [psutil.Process(), *map(_server, (postgres.NAME, *cassandra.NAMES))]
    before = list(map(processor_seconds_of, processes))
    for each in (dense, purge):
        seconds_of_purge(moderator, each)
    purged = list(map(processor_seconds_of, processes))
    if not link_entries():
        raise RuntimeError("the purges left no entry of the audit log to link")
    linked = list(map(processor_seconds_of, processes))
    seconds_of_undo(moderator, purge)
    return sum(purged) - sum(before), sum(linked[:2]) - sum(purged[:2])


def _server(name: str) -> psutil.Process:
    process = find_process(settings.STACK, name)
    if process is None:
        raise RuntimeError(f"{name} does not run")
    return process


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
