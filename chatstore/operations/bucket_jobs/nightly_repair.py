"""The job "repair": repairs all tables on every node, in several nights if need be.

- Every node repairs its primary ranges (`-pr`), `messages` separately and the small tables together, always in full, so
  that each range is compared once.
- The node whose last repair is the oldest comes first, by Cassandra's history: a night continues where the last one
  ended, whether its hours had ended, its worker was killed or a node was down. A retry, and a worker that takes the run
  over, skip what the night has repaired.
- Up to `REPAIR_NODES_AT_ONCE` nodes are repaired at a time, two only if no node has replicas of both. Nodes that share
  replicas with a node that is down are left; a node that fails does not keep the others from being repaired.
- A run that is stopped or runs out of hours ends its nodetool and the comparison on the replicas.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from django.conf import settings

from chatstore.domain.errors import ChatstoreError, NodeUnreachable, StoreUnavailable
from chatstore.domain.repair_rounds import LONG_AGO, count_repaired, next_node, oldest_first, replicas_by_node
from chatstore.domain.texts import as_json, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import JobRun
from chatstore.models.cassandra import TABLES
from chatstore.operations.bucket_jobs.repair import POLL_SECONDS, describe_part, require_up
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health.channel_health import SEEN_BY_REPAIR
from chatstore.operations.jobs.runs import Claim, OutOfHours, attempts_of
from chatstore.operations.ledger.delete_log import prune_deletes
from chatstore.operations.ledger.summaries import mark_due
from chatstore.operations.repair_status.gc_grace import restore_after_repair
from chatstore.operations.repair_status.repair_clock import (
    MESSAGES,
    covered_until,
    is_only_copy,
    read_clock,
    read_clocks,
    repaired_by_node,
    report_late_repairs,
)
from chatstore.operations.repair_status.rounds import NODES_REPAIRED, ROUND_BEGAN, last_round_began_at
from chatstore.store import cassandra, figures, nodes, repairs, top_partitions
from chatstore.store.repairs import Part, RepairFailed
from chatstore.store.top_partitions import TopPartitions

TABLE_GROUPS: tuple[tuple[str, ...], ...] = ((MESSAGES,), tuple(table for table in TABLES if table != MESSAGES))
"""Tables per command. Repairing the small tables together saves starting a JVM for each."""


def repair_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "repair": repair all tables on every node, or as many nodes as the run's hours allow.

    Return counts by name. Raises `NodeUnreachable`, `RepairOverlaps`, `RepairFailed`; `OutOfHours` if no node was
    repaired.
    """
    if is_only_copy():
        return {"not needed": "there is only one replica"}
    replicas = replicas_by_node(cassandra.replicas_by_range())
    if next_node(sorted(replicas), (), replicas, down=nodes.list_down()) is None:
        require_up(sorted(replicas))
    repairs.refuse_overlap(list(TABLES))
    night = Night(claim, replicas)
    try:
        night.work()
    except OutOfHours:
        if not night.done:
            raise
    else:
        night.check_complete()
        night.report(_("reading the figures of the nodes"))
    measured = _note_listed(sorted(replicas))
    return night.result | {"buckets measured": measured} | _conclude()


class Night:
    """One run: the nodes that wait, oldest repair first, those that are being repaired, and the others.

    done: number of nodes that this run has repaired. result: the run's counts so far.
    """

    def __init__(self, claim: Claim, replicas: Mapping[str, frozenset[str]]) -> None:
        self._claim = claim
        self._replicas = replicas
        self._history = repaired_by_node([table for group in TABLE_GROUPS for table in group])
        began_at = _first_began_at(claim.run)
        last_repairs = {host: self._last_repair(host) for host in replicas}
        self._parts = {host: self._parts_left(host, began_at) for host in oldest_first(last_repairs)}
        self._waiting = [host for host, parts in self._parts.items() if parts]
        self._running: dict[str, Generator[str, None, None]] = {}
        self._failed: dict[str, ChatstoreError] = {}
        # A worker that takes the run over continues its counts.
        self.done = int(claim.run.result.get(NODES_REPAIRED, 0))
        self._parts_total = len(replicas) * len(TABLE_GROUPS)
        self._parts_done = self._parts_total - sum(map(len, self._parts.values()))
        self._round_began_at = last_round_began_at() or began_at
        self._begin_round_if_complete(began_at)
        self.result: dict[str, Any] = {"nodes": len(replicas), "tables": len(TABLES), "ranges": 0}
        if self._parts_done:
            self.result["repaired by an earlier attempt"] = self._parts_done
        self._note()

    def work(self) -> None:
        """Repair the nodes that wait, as far as their replicas are up. Raises as `Claim.check`."""
        labels: dict[str, str] = {}
        self._claim.check()
        try:
            while self._start_nodes():
                for host, steps in list(self._running.items()):
                    try:
                        labels[host] = next(steps)
                    except StopIteration:
                        del self._running[host]
                        self.done += 1
                        self._begin_round_if_complete(postgres_now())
                        self._note()
                    except (RepairFailed, NodeUnreachable) as error:
                        del self._running[host]
                        self._failed[host] = error
                        self._note()
                if len(self._running) == 1:
                    self.report(labels[next(iter(self._running))])
                elif self._running:
                    self.report(_("nodes %(nodes)s", nodes=tuple(self._running)))
        finally:
            with ExitStack() as stack:
                for steps in self._running.values():
                    stack.callback(steps.close)

    def _start_nodes(self) -> bool:
        """Start the repairs of as many nodes as may be repaired now; return whether any is being repaired."""
        while len(self._running) < settings.REPAIR_NODES_AT_ONCE and self._waiting:
            host = next_node(self._waiting, self._running, self._replicas, down=nodes.list_down())
            if host is None:
                break
            self._waiting.remove(host)
            self._running[host] = self._repair(host)
        return bool(self._running)

    def _repair(self, host: str) -> Generator[str, None, None]:
        """Repair a node, and yield what is being done while it waits. Raises as `Repair.finish`."""
        for part in self._parts[host]:
            with repairs.repairing(part) as repair:
                yield describe_part(part)
                while not repair.call.wait(POLL_SECONDS / max(1, len(self._running))):
                    table, share = repair.read_progress(self._replicas[host])
                    yield describe_part(part, table=table, share=share)
                repaired = repair.finish()
            for table in part.tables:
                self._history[table][host] = repaired.began_at
            self._parts_done += 1
            self.result["ranges"] += len(repaired.ranges) * len(part.tables)

    def report(self, what: str) -> None:
        """Report the progress. Raises as `Claim.check`."""
        self._claim.report_progress(done=self._parts_done, total=self._parts_total, what=what)

    def check_complete(self) -> None:
        """Raise the first error of a node, or `NodeUnreachable` if nodes were left because others are down."""
        for error in self._failed.values():
            raise error
        if self._waiting:
            needed = frozenset().union(*(self._replicas[host] for host in self._waiting))
            down = sorted(needed.intersection(nodes.list_down()))
            raise NodeUnreachable(
                ngettext_lazy(
                    "Node %(nodes)s is down, and a repair needs every replica. %(left)s of %(all)s nodes were left for "
                    "the next run.",
                    "Nodes %(nodes)s are down, and a repair needs every replica. %(left)s of %(all)s nodes were left "
                    "for the next run.",
                    len(down),
                    nodes=tuple(down),
                    left=len(self._waiting),
                    all=len(self._replicas),
                )
            )

    def _parts_left(self, host: str, since: dt.datetime) -> list[Part]:
        """Return the parts of a node that no repair which began after `since` has covered."""
        return [
            Part(host, group)
            for group in TABLE_GROUPS
            if any((self._history[table][host] or LONG_AGO) < since for table in group)
        ]

    def _last_repair(self, host: str) -> dt.datetime | None:
        """Return the start of the oldest repair of any table on a node; None if one of them was not repaired."""
        times = [self._history[table][host] for group in TABLE_GROUPS for table in group]
        known = [time for time in times if time is not None]
        return min(known) if len(known) == len(times) else None

    def _begin_round_if_complete(self, now: dt.datetime) -> None:
        last_repairs = {host: self._last_repair(host) for host in self._replicas}
        if self._waiting and count_repaired(last_repairs, self._round_began_at) == len(self._replicas):
            self._round_began_at = now

    def _note(self) -> None:
        """Store the counts of what is done, in case the run does not complete. Raises `RunLost`."""
        self.result[NODES_REPAIRED] = self.done
        self.result[ROUND_BEGAN] = as_json(self._round_began_at)
        left = len(self._waiting) + len(self._running) + len(self._failed)
        self.result["nodes left"] = left
        self._claim.note(self.result)


def _first_began_at(run: JobRun) -> dt.datetime:
    """Return when a run began, or the first attempt if it is an automatic retry."""
    first = run if run.retry_of is None or run.requested_by_id is not None else attempts_of(run)[-1]
    return first.started_at or postgres_now()


def _note_listed(hosts: Sequence[str]) -> int:
    """Record the figures of all buckets listed by any node; return how many. Unreachable nodes are skipped."""
    read_at = postgres_now()
    lists = [one for one in top_partitions.read_all_live(hosts).values() if isinstance(one, TopPartitions)]
    sizes = top_partitions.max_by_bucket(one.sizes for one in lists)
    tombstones = top_partitions.max_by_bucket(one.tombstones for one in lists)
    listed = sizes.keys() | tombstones.keys()
    for key in listed:
        measured = {"bytes": sizes.get(key), SEEN_BY_REPAIR: tombstones.get(key)}
        found = {name: value for name, value in measured.items() if value is not None}
        figures.note_figures(*key, found, source=top_partitions.SOURCE, measured_at=read_at)
    mark_due({channel_id for channel_id, _ in listed})
    return len(listed)


def _conclude() -> dict[str, Any]:
    """Conclude a full repair: prune recorded deletes, restore gc_grace, update the findings of late repairs."""
    concluded: dict[str, Any] = {}
    try:
        clock = read_clock(MESSAGES)
        if clock.began_at is not None:
            # Until gc_grace has passed, they decide when a bucket may be compacted.
            kept_from = clock.now - dt.timedelta(seconds=max(clock.gc_grace_seconds, clock.normal_gc_grace_seconds))
            prune_deletes(min(covered_until(clock.began_at), kept_from))
        if restore_after_repair(clock):
            concluded["gc_grace"] = "restored"
        report_late_repairs(read_clocks())
    except StoreUnavailable as error:
        # The repair itself is complete and recorded; the monitor checks again.
        concluded["afterwards"] = as_json(error.text)
    return concluded
