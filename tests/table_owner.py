"""Access as the owner of the Postgres tables, for triggers and tables of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection

from chatstore.local.layout import POSTGRES_OWNER, read_stack
from chatstore.local.secrets import read_or_make_secret


@contextmanager
def as_table_owner() -> Iterator[None]:
    """Connect this process as the table owner for the duration of the context; on an external server change nothing."""
    if not settings.LOCAL_POSTGRES:
        yield
        return
    usual = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
    password = read_or_make_secret(read_stack(os.environ), "postgres_owner_password")
    connection.close()
    connection.settings_dict.update({"USER": POSTGRES_OWNER, "PASSWORD": password})
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(usual)
