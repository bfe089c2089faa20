"""A separate Postgres database, in which no other test's workers poll for purges."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection

from chatstore.local.layout import read_stack
from devstack.postgres import prepare_database
from tests.table_owner import as_table_owner


@contextmanager
def separate_database(name: str) -> Iterator[None]:
    """Switch this process to another database of the same server, with all tables, for the duration of the context.

    name: must end in _test, as the suite demands. The database is created if missing, and kept.
    """
    assert name.endswith("_test")
    usual = connection.settings_dict["NAME"]
    prepare_database(read_stack(os.environ), name=name)
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        with as_table_owner():
            call_command("migrate", interactive=False, verbosity=0)
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = usual
