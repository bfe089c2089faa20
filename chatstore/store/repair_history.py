"""Completed repairs, from Cassandra's own history, regardless of who started them and which node coordinated them.

A row of `repair_history` names one range of a session, the last of them; the row of its parent has all. A parent that
failed in part names none, and is ignored.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from django.conf import settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.token_ranges import Repaired, parse_range
from chatstore.store import cassandra, nodes

_SESSIONS = (
    "SELECT parent_id, status FROM system_distributed.repair_history "
    "WHERE keyspace_name = ? AND columnfamily_name = ? ORDER BY id DESC"
)
_PARENT = (
    "SELECT started_at, finished_at, exception_message, successful_ranges, options, columnfamily_names "
    "FROM system_distributed.parent_repair_history WHERE parent_id = ?"
)

PAGE = 500

AT_ONCE = 16
"""Parents read together. A night of a whole cluster has some dozens; tools that repair in segments leave thousands."""


def read_repaired(table: str) -> Iterator[Repaired]:
    """Yield full repairs of a table that succeeded within 30 days, the latest first; read lazily.

    Raises `StoreUnavailable`.
    """
    seen: set[uuid.UUID] = set()
    for sessions in _pages(_SESSIONS, (settings.CASSANDRA["keyspace"], table)):
        done = dict.fromkeys(parent for parent, status in sessions if status == "SUCCESS" and parent not in seen)
        seen.update(done)
        parents = iter(done)
        while chunk := list(islice(parents, AT_ONCE)):
            yield from filter(None, _read_parents(chunk, (table,)))


def read_parent(parent_id: uuid.UUID, *, tables: tuple[str, ...]) -> Repaired | None:
    """Return the ranges that one repair covered of all these tables; None if it failed, still runs, or is not a full
    repair.
    """
    return _read_parents([parent_id], tables)[0]


def _read_parents(parent_ids: Sequence[uuid.UUID], tables: tuple[str, ...]) -> list[Repaired | None]:
    jobs = [(_PARENT, (parent_id,)) for parent_id in parent_ids]
    try:
        answers = list(cassandra.execute_window(jobs, consistency=_consistency()))
    except StoreUnavailable:
        answers = list(cassandra.execute_window(jobs, consistency=cassandra.LOCAL_ONE))
    return [_describe(rows, tables) for rows in answers]


def _describe(rows: Sequence[cassandra.Row], tables: tuple[str, ...]) -> Repaired | None:
    for started_at, finished_at, error, ranges, options, repaired_tables in rows:
        is_done = started_at is not None and finished_at is not None and not error
        if is_done and ranges and set(tables) <= set(repaired_tables or ()) and _is_full(options or {}):
            return Repaired(started_at.replace(tzinfo=dt.UTC), tuple(parse_range(text) for text in sorted(ranges)))
    return None


def _is_full(options: Mapping[str, str]) -> bool:
    """Return whether the repair compared all replicas and all of their data."""
    partly = any(options.get(name, "") not in ("", "[]", "null") for name in ("dataCenters", "hosts"))
    flags = ("incremental", "forceRepair", "pullRepair")
    otherwise = any(options.get(name, "").lower() == "true" for name in flags)
    return not partly and not otherwise and options.get("previewKind", "NONE") == "NONE"


def _pages(cql: str, params: cassandra.Params) -> Iterator[list[cassandra.Row]]:
    """Yield pages of a read of system_distributed, whose rows are written to one replica and reach the others later.

    With a node down a quorum may be unavailable: then one replica is read, which may have fewer rows but never wrong
    ones.
    """
    try:
        yield from cassandra.iterate(cql, params, fetch_size=PAGE, consistency=_consistency())
    except StoreUnavailable:
        yield from cassandra.iterate(cql, params, fetch_size=PAGE, consistency=cassandra.LOCAL_ONE)


def _consistency() -> int:
    """Return LOCAL_QUORUM, unless a node is down and the quorum would time out."""
    return cassandra.LOCAL_ONE if nodes.list_down() else cassandra.LOCAL_QUORUM
