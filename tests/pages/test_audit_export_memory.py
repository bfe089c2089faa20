"""An export of the audit log reads a part of the entries at a time: its memory does not grow with their number."""

from __future__ import annotations

import gc
import secrets
import tracemalloc
from collections.abc import Callable, Iterable, Iterator

import pytest
from django.db import connection

from chatstore.models.users import User
from moderation.operations.lookup.audit_log import ENTRIES_PER_READ, AuditQuery, ListedEntry, export_entries
from moderation.views.audit_exports import as_csv, as_json
from tests.conftest import make_user

SMALL, LARGE = 2 * ENTRIES_PER_READ, 10 * ENTRIES_PER_READ


def insert_entries(actor: User, count: int) -> None:
    """Insert entries as large as those of purges."""
    details = f'{{"reason": "{"spam " * 40}", "manifest_hash": "{secrets.token_hex(32)}"}}'
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO moderation_auditentry (id, at, actor_id, action, details) "
            "SELECT make_row_id(%s + n, 0, n), clock_timestamp(), %s, 'purge_confirmed', %s::jsonb "
            "FROM generate_series(1, %s) n",
            [1_700_000_000_000 + secrets.randbits(36), actor.pk, details, count],
        )


@pytest.mark.parametrize("write", [as_csv, as_json])
def test_the_memory_of_an_export_does_not_grow(
    write: Callable[[Iterable[ListedEntry]], Iterator[str]], ada: User
) -> None:
    peaks = {}
    for count in (SMALL, LARGE):
        actor = make_user("mona", group=None)
        insert_entries(actor, count)
        entries = export_entries(AuditQuery(person=actor.pk), chosen={}, actor=ada)
        gc.collect()
        tracemalloc.start()
        try:
            lines = sum(part.count("\n") for part in write(entries))
            peaks[count] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert lines > count
    assert peaks[LARGE] < 1.5 * peaks[SMALL]
