"""What was repaired, by Cassandra's own history: whoever began it, and whichever node coordinated it.

A row of `repair_history` names one range of a session, the last of them; all are in the row of its
parent. A parent that failed in part names none, and counts for nothing.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping

from django.conf import settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.token_ranges import Repaired, parse_range
from chatstore.store import cassandra

_SESSIONS = (
    "SELECT parent_id, status FROM system_distributed.repair_history "
    "WHERE keyspace_name = ? AND columnfamily_name = ? ORDER BY id DESC"
)
_PARENT = (
    "SELECT started_at, finished_at, exception_message, successful_ranges, options, columnfamily_names "
    "FROM system_distributed.parent_repair_history WHERE parent_id = ?"
)

PAGE = 200


def read_repaired(table: str) -> Iterator[Repaired]:
    """Full repairs of a table that succeeded within 30 days, the latest first; read as they are taken.

    Raises `StoreUnavailable`.
    """
    seen: set[uuid.UUID] = set()
    for sessions in _pages(_SESSIONS, (settings.CASSANDRA["keyspace"], table)):
        for parent_id, status in sessions:
            if status == "SUCCESS" and parent_id not in seen:
                seen.add(parent_id)
                repaired = read_parent(parent_id, tables=(table,))
                if repaired is not None:
                    yield repaired


def read_parent(parent_id: uuid.UUID, *, tables: tuple[str, ...]) -> Repaired | None:
    """What one repair covered of all these tables; None for one that failed, is not over, or left something out."""
    for rows in _pages(_PARENT, (parent_id,)):
        for started_at, finished_at, error, ranges, options, repaired_tables in rows:
            is_done = started_at is not None and finished_at is not None and not error
            if not is_done or not ranges or not set(tables) <= set(repaired_tables) or not _is_full(options or {}):
                return None
            return Repaired(started_at.replace(tzinfo=dt.UTC), tuple(parse_range(text) for text in sorted(ranges)))
    return None


def _is_full(options: Mapping[str, str]) -> bool:
    """Whether all replicas were compared with each other, and all of their data."""
    partly = any(options.get(name, "") not in ("", "[]", "null") for name in ("dataCenters", "hosts"))
    flags = ("incremental", "forceRepair", "pullRepair")
    otherwise = any(options.get(name, "").lower() == "true" for name in flags)
    return not partly and not otherwise and options.get("previewKind", "NONE") == "NONE"


def _pages(cql: str, params: cassandra.Params) -> Iterator[list[cassandra.Row]]:
    """Pages of a read of system_distributed, whose rows are written to one replica and reach the others later.

    With a node away there may be no quorum: then any replica is asked, which may know less, never more.
    """
    try:
        yield from cassandra.iterate(cql, params, fetch_size=PAGE)
    except StoreUnavailable:
        yield from cassandra.iterate(cql, params, fetch_size=PAGE, consistency=cassandra.LOCAL_ONE)
