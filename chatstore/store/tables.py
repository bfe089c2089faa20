"""Schema of our tables, and the only part of it that is ever altered: gc_grace."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.texts import gettext_lazy as _
from chatstore.store import cassandra

_SELECT = "SELECT table_name, id, gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = ?"

ALTER_SECONDS = 30.0

_UUID_EPOCH = dt.datetime(1582, 10, 15, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class TableFacts:
    """gc_grace_seconds: the current value. created_at: from the table's id; None if that carries no time."""

    gc_grace_seconds: int
    created_at: dt.datetime | None


def read_table(table: str) -> TableFacts:
    """Read a table's schema. Raises `StoreUnavailable`, also if the table does not exist."""
    return read_tables([table])[table]


def read_tables(tables: Collection[str]) -> dict[str, TableFacts]:
    """Read the schemas of several tables, with one statement. Raises as `read_table`."""
    rows = cassandra.execute(_SELECT, (settings.CASSANDRA["keyspace"],), consistency=cassandra.LOCAL_ONE)
    found = {name: TableFacts(int(gc_grace), _time_of(table_id)) for name, table_id, gc_grace in rows}
    for table in tables:
        if table not in found:
            raise StoreUnavailable(_("The keyspace has no table %(table)s.", table=table))
    return {table: found[table] for table in tables}


def set_gc_grace(table: str, seconds: int) -> None:
    """Alter the table. Raises `StoreUnavailable`."""
    near = settings.CASSANDRA["datacenter"]
    host = next((address for address, is_up, datacenter in cassandra.hosts() if is_up and datacenter == near), None)
    if host is None:
        raise StoreUnavailable(_("No Cassandra node answers."))
    keyspace = settings.CASSANDRA["keyspace"]
    # A schema change returns once all nodes have agreed on it.
    cql = f"ALTER TABLE {keyspace}.{table} WITH gc_grace_seconds = {int(seconds)}"
    cassandra.submit_to(host, cql, timeout=ALTER_SECONDS).rows()


def _time_of(table_id: Any) -> dt.datetime | None:
    if not isinstance(table_id, uuid.UUID) or table_id.version != 1:
        return None
    return _UUID_EPOCH + dt.timedelta(microseconds=table_id.time // 10)
