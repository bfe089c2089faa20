"""Completed repairs, from Cassandra's own history, regardless of who started them and which node coordinated them.

A row of `repair_history` names one range of a session, the last of them; the row of its parent has all. A parent that
failed in part names none, and is ignored. The row of a parent that has ended never changes, so each process reads it
once; the parents of a round of a large cluster are hundreds, and most of them cover several tables.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from django.conf import settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.token_ranges import Repaired, parse_range
from chatstore.store import cassandra, nodes

_SESSIONS = (
    "SELECT parent_id, status FROM system_distributed.repair_history "
    "WHERE keyspace_name = ? AND columnfamily_name = ? ORDER BY id DESC"
)
_PARENTS = (
    "SELECT parent_id, started_at, finished_at, exception_message, successful_ranges, options, columnfamily_names "
    "FROM system_distributed.parent_repair_history WHERE parent_id IN ?"
)

AT_ONCE = 64
"""Parents read by one statement. A night of a whole cluster has some hundreds; tools that repair in segments leave
thousands.
"""

MAX_REMEMBERED_REPAIRS = 4_000
"""Ended parents that a process remembers: about 10 MB if each has 16 ranges."""


@dataclass(frozen=True, slots=True)
class _Parent:
    """A repair command that has ended. repaired: None if it failed, or was not a full repair."""

    repaired: Repaired | None
    tables: frozenset[str]

    def repaired_of(self, tables: Sequence[str]) -> Repaired | None:
        """Return what it repaired of all these tables; None if it left one out."""
        return self.repaired if self.tables.issuperset(tables) else None


_ended: dict[uuid.UUID, _Parent] = {}
"""Parents that have ended, as read by this process."""


def read_repaired(table: str) -> Iterator[Repaired]:
    """Yield full repairs of a table that succeeded within 30 days, the latest first; read lazily.

    Raises `StoreUnavailable`.
    """
    return read_repaired_by_table([table])[table]


def read_repaired_by_table(tables: Sequence[str]) -> dict[str, Iterator[Repaired]]:
    """Return `read_repaired` of several tables. The first pages of all of them are requested at once."""
    consistency = _consistency()
    return {table: _yield_repaired(table, _request_sessions(table, consistency)) for table in tables}


def read_parent(parent_id: uuid.UUID, *, tables: tuple[str, ...]) -> Repaired | None:
    """Return the ranges that one repair covered of all these tables; None if it failed, still runs, or is not a full
    repair.
    """
    return next(_yield_parents([parent_id], tables), None)


def _request_sessions(table: str, consistency: int) -> cassandra.Pending | StoreUnavailable:
    try:
        return cassandra.submit(_SESSIONS, (settings.CASSANDRA["keyspace"], table), consistency=consistency)
    except StoreUnavailable as error:
        return error


def _yield_repaired(table: str, requested: cassandra.Pending | StoreUnavailable) -> Iterator[Repaired]:
    seen: set[uuid.UUID] = set()
    for sessions in _pages(table, requested):
        parents = dict.fromkeys(parent_id for parent_id, status in sessions if status == "SUCCESS")
        yield from _yield_parents([parent_id for parent_id in parents if parent_id not in seen], (table,))
        seen.update(parents)


def _yield_parents(parent_ids: Sequence[uuid.UUID], tables: Sequence[str]) -> Iterator[Repaired]:
    """Yield what each of these parents repaired of all these tables, in their order."""
    left = iter(parent_ids)
    while chunk := list(islice(left, AT_ONCE)):
        parents = {parent_id: parent for parent_id in chunk if (parent := _ended.get(parent_id)) is not None}
        missing = [parent_id for parent_id in chunk if parent_id not in parents]
        if missing:
            parents |= _read_parents(missing)
        for parent_id in chunk:
            if parent_id in parents and (repaired := parents[parent_id].repaired_of(tables)) is not None:
                yield repaired


def _read_parents(parent_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, _Parent]:
    """Read parents and return those that have ended."""
    try:
        rows = cassandra.execute(_PARENTS, (parent_ids,), consistency=_consistency())
    except StoreUnavailable:
        rows = cassandra.execute(_PARENTS, (parent_ids,), consistency=cassandra.LOCAL_ONE)
    found = {parent_id: parent for parent_id, *row in rows if (parent := _describe(tuple(row))) is not None}
    if len(_ended) + len(found) > MAX_REMEMBERED_REPAIRS:
        _ended.clear()
    _ended.update(found)
    return found


def _describe(row: cassandra.Row) -> _Parent | None:
    """Return a parent from its row; None unless it has ended, and while a replica has only a part of the row."""
    started_at, finished_at, error, ranges, options, tables = row
    if started_at is None or finished_at is None:
        return None
    if error or not ranges or not _is_full(options or {}):
        return _Parent(None, frozenset())
    repaired = Repaired(started_at.replace(tzinfo=dt.UTC), tuple(parse_range(text) for text in sorted(ranges)))
    return _Parent(repaired, frozenset(tables or ()))


def _is_full(options: Mapping[str, str]) -> bool:
    """Return whether the repair compared all replicas and all of their data."""
    partly = any(options.get(name, "") not in ("", "[]", "null") for name in ("dataCenters", "hosts"))
    flags = ("incremental", "forceRepair", "pullRepair")
    otherwise = any(options.get(name, "").lower() == "true" for name in flags)
    return not partly and not otherwise and options.get("previewKind", "NONE") == "NONE"


def _pages(table: str, requested: cassandra.Pending | StoreUnavailable) -> Iterator[list[cassandra.Row]]:
    """Yield pages of a read of system_distributed, whose rows are written to one replica and reach the others later.

    With a node down a quorum may be unavailable: then one replica is read, which may have fewer rows but never wrong
    ones.
    """
    try:
        if isinstance(requested, StoreUnavailable):
            raise requested
        yield from requested.pages()
    except StoreUnavailable:
        keyspace = settings.CASSANDRA["keyspace"]
        yield from cassandra.iterate(_SESSIONS, (keyspace, table), consistency=cassandra.LOCAL_ONE)


def _consistency() -> int:
    """Return LOCAL_QUORUM, unless a node is down and the quorum would time out."""
    return cassandra.LOCAL_ONE if nodes.list_down() else cassandra.LOCAL_QUORUM
