"""A Postgres database apart, in which nobody else's workers look for purges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.core.management import call_command
from django.db import connection
from psycopg import sql


@contextmanager
def database_apart(name: str) -> Iterator[None]:
    """While the context stands, this process's database is another one of the same server, with all tables.

    name: ends in _test, as the suite demands. It is made where it is missing, and kept.
    """
    assert name.endswith("_test")
    usual = connection.settings_dict["NAME"]
    _make_database(name)
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        call_command("migrate", interactive=False, verbosity=0)
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = usual


def _make_database(name: str) -> None:
    usual = connection.settings_dict
    with psycopg.connect(
        host=usual["HOST"],
        port=usual["PORT"],
        user=usual["USER"],
        password=usual["PASSWORD"],
        dbname="postgres",
        autocommit=True,
    ) as maintenance:
        there = maintenance.execute("SELECT FROM pg_database WHERE datname = %s", (name,)).fetchone()
        if there is None:
            maintenance.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
