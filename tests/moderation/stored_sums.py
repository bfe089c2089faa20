"""Sums of steps that a test has written itself."""

from __future__ import annotations

from importlib import import_module

from django.db import connection

FILL: tuple[str, ...] = import_module("moderation.migrations.0006_fill_sums").FILL


def store_sums() -> None:
    """Compute the sums of all counted steps again, as the migration does."""
    with connection.cursor() as cursor:
        for table in ("moderation_purgeperiod", "moderation_purgeday"):
            cursor.execute(f"DELETE FROM {table}")
    fill_sums()


def fill_sums() -> None:
    """Run the statements of the migration, which may be repeated."""
    with connection.cursor() as cursor:
        for sql in FILL:
            cursor.execute(sql)
