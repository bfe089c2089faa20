"""A temporary skew of Postgres's clock, like after a failover to a machine with another clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from tests.table_owner import as_table_owner


@contextmanager
def postgres_off(seconds: float) -> Iterator[None]:
    """Shift `clock_timestamp()` on this thread's connection by `seconds`; negative values set it back."""
    with as_table_owner(), connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA IF NOT EXISTS off")
        cursor.execute("GRANT USAGE ON SCHEMA off TO PUBLIC")
        cursor.execute(
            "CREATE OR REPLACE FUNCTION off.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
            f"$$ SELECT pg_catalog.clock_timestamp() + make_interval(secs => {float(seconds)}) $$"
        )
    with connection.cursor() as cursor:
        cursor.execute("SET search_path = off, pg_catalog, public")
    try:
        yield
    finally:
        with as_table_owner(), connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA off CASCADE")
