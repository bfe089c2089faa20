"""The stage for faults: a database apart, workers that may be killed, moves that can be held."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from psycopg import sql

from tests.moderation.faults.real_workers.arrows import arrows_installed
from tests.moderation.faults.real_workers.workers import Workers

DATABASE = "chatstore_faults_test"


def make_database() -> None:
    """Makes the database where it is missing; its name ends in _test, as the suite demands."""
    usual = connection.settings_dict
    with psycopg.connect(
        host=usual["HOST"],
        port=usual["PORT"],
        user=usual["USER"],
        password=usual["PASSWORD"],
        dbname="postgres",
        autocommit=True,
    ) as maintenance:
        there = maintenance.execute("SELECT FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
        if there is None:
            maintenance.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


@pytest.fixture(scope="package")
def database_apart(_open_databases: None) -> Iterator[None]:
    """These tests' Postgres is one in which nobody else's workers look for purges."""
    make_database()
    usual = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = DATABASE
    try:
        call_command("migrate", interactive=False, verbosity=0)
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = usual


@pytest.fixture(scope="package")
def workers(database_apart: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """A worker and beat, looking each second, whose moves can be stopped."""
    folder: Path = tmp_path_factory.mktemp("workers")
    running = Workers(folder)
    with arrows_installed():
        try:
            running.start()
            yield running
        finally:
            running.stop()
