"""Live rows and tombstones that Cassandra's replicas scanned for a read, from its trace.

A trace is written slightly after its response, each replica's event separately, so it is polled until all of them have
arrived. A node drops events while more than 1,000 wait to be written (`Stage.TRACING` of Cassandra 5.0), and nothing
tells which. Unknown is never 0.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.conf import settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.texts import ngettext_lazy
from chatstore.store import cassandra

TRACE_WAIT_SECONDS = 5.0
"""A trace is written 6–10 ms after its response, on a cold cluster much later."""

LOCAL_ONE_SECONDS = 1.0
"""For so long the trace is read at LOCAL_ONE, then at quorum: the replica read may have been down when it was
written.
"""

_SELECT_EVENTS = "SELECT source, activity FROM system_traces.events WHERE session_id = ?"
_TRACE_READ = re.compile(r"Read (\d+) live rows and (\d+) tombstone cells")


@dataclass(frozen=True, slots=True)
class Traced:
    """A read's rows and the rows that its replicas scanned.

    per_replica: address to (live rows, tombstones), summed over the pages of the read; live, tombstones: the largest of
    them. milliseconds: of the read alone.
    """

    rows: list[cassandra.Row]
    live: int
    tombstones: int
    per_replica: dict[str, tuple[int, int]]
    milliseconds: float


def execute_traced(
    cql: str, params: cassandra.Params = (), *, consistency: int | None = None, fetch_size: int = cassandra.FETCH_SIZE
) -> Traced:
    """Execute a read and return how much its replicas scanned.

    At LOCAL_QUORUM as many replicas report as form the quorum; at ALL every one. Raises `StoreUnavailable` if a
    replica's event does not arrive: unknown is never 0.
    """
    began = time.monotonic()
    trace_ids: list[uuid.UUID] = []
    rows = cassandra.submit(cql, params, consistency=consistency, fetch_size=fetch_size, traces=trace_ids).rows()
    milliseconds = (time.monotonic() - began) * 1000
    wanted = _count_replicas(cassandra.LOCAL_QUORUM if consistency is None else consistency)
    per_replica: dict[str, tuple[int, int]] = {}
    for trace_id in trace_ids:
        seen = _read_trace(trace_id, wanted, time.monotonic())
        if len(seen) < wanted:
            raise unreported(len(seen), wanted)
        for replica, (live, dead) in seen.items():
            sum_live, sum_dead = per_replica.get(replica, (0, 0))
            per_replica[replica] = (sum_live + live, sum_dead + dead)
    return Traced(
        rows=rows,
        live=max(live for live, _ in per_replica.values()),
        tombstones=max(dead for _, dead in per_replica.values()),
        per_replica=per_replica,
        milliseconds=milliseconds,
    )


def count_tombstones(reads: Sequence[Sequence[uuid.UUID]]) -> list[int | None]:
    """Return the tombstones that traced quorum reads scanned, with all traces in flight at once.

    reads: the trace of each page of a read. Of a page the replica that scanned the most counts. None if an event has
    not arrived within `TRACE_WAIT_SECONDS`.
    """
    wanted = _count_replicas(cassandra.LOCAL_QUORUM)
    jobs = ((_SELECT_EVENTS, (trace,)) for traces in reads for trace in traces)
    answers = cassandra.execute_window(jobs, consistency=cassandra.LOCAL_ONE)
    began = time.monotonic()
    counts: list[int | None] = []
    for traces in reads:
        # All of them: the answers of the next read follow.
        pages = [_tombstones_in(trace, next(answers), wanted, began) for trace in traces]
        counts.append(None if None in pages else sum(count for count in pages if count is not None))
    return counts


def _tombstones_in(trace: uuid.UUID, events: Iterable[cassandra.Row], wanted: int, began: float) -> int | None:
    seen = _parse_rows(events)
    if len(seen) < wanted:
        seen = _read_trace(trace, wanted, began)
    return max(dead for _, dead in seen.values()) if len(seen) >= wanted else None


def _count_replicas(consistency: int) -> int:
    replication: dict[str, int] = settings.CASSANDRA["replication"]
    if consistency == cassandra.ALL:
        return sum(replication.values())
    if consistency == cassandra.LOCAL_QUORUM:
        return int(replication[settings.CASSANDRA["datacenter"]]) // 2 + 1
    return 1


def unreported(answered: int, wanted: int) -> StoreUnavailable:
    """Return the error of a read whose trace lacks events."""
    return StoreUnavailable(
        ngettext_lazy(
            "Only %(answered)s of %(count)s replica reported what it scanned.",
            "Only %(answered)s of %(count)s replicas reported what they scanned.",
            wanted,
            answered=answered,
        )
    )


def _read_trace(trace_id: uuid.UUID, wanted: int, began: float) -> dict[str, tuple[int, int]]:
    """Return (live, tombstones) of each replica in one page's trace, polling until all or the time has come.

    began: of the wait, by the monotonic clock.
    """
    while True:
        waited = time.monotonic() - began
        seen = _query_trace(trace_id, cassandra.LOCAL_ONE)
        if len(seen) < wanted and waited > LOCAL_ONE_SECONDS:
            with suppress(StoreUnavailable):
                seen = _query_trace(trace_id, cassandra.LOCAL_QUORUM)
        if len(seen) >= wanted or waited > TRACE_WAIT_SECONDS:
            return seen
        time.sleep(0.01)


def _query_trace(trace_id: uuid.UUID, consistency: int) -> dict[str, tuple[int, int]]:
    return _parse_rows(cassandra.execute(_SELECT_EVENTS, (trace_id,), consistency=consistency))


def _parse_rows(events: Iterable[cassandra.Row]) -> dict[str, tuple[int, int]]:
    return parse_trace((str(source), str(activity)) for source, activity in events)


def parse_trace(events: Iterable[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """Return (live rows, tombstones) by source; of two events of a source the larger one counts.

    Replicas that differ are read twice, hence two events.
    """
    seen: dict[str, tuple[int, int]] = {}
    for source, activity in events:
        match = _TRACE_READ.search(activity)
        if match:
            live, dead = int(match[1]), int(match[2])
            old_live, old_dead = seen.get(source, (0, 0))
            seen[source] = (max(live, old_live), max(dead, old_dead))
    return seen
