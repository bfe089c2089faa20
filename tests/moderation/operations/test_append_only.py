"""Entries of the audit log can be inserted and read, and nothing else, whatever role connects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import ProgrammingError, connection, transaction

from chatstore.models.users import User
from moderation.models import AuditEntry, UnlinkedEntry
from moderation.operations.access.audit import record_action
from moderation.operations.access.audit_monitoring import has_triggers, may_change_audit_log
from tests.table_owner import as_table_owner

CHANGES = (
    "UPDATE moderation_auditentry SET action = 'nothing' WHERE id = %s",
    "DELETE FROM moderation_auditentry WHERE id = %s",
    "TRUNCATE moderation_auditentry CASCADE",
)


@pytest.fixture
def entry(ada: User) -> AuditEntry:
    return record_action("hold_placed", actor=ada, details={"reason": "appeal"})


def run(sql: str, *params: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, params if "%s" in sql else None)
        return int(cursor.rowcount)


def run_as_retention(sql: str, *params: int) -> int:
    with transaction.atomic():
        run("SET LOCAL chatstore.audit_retention = 'on'")
        return run(sql, *params)


@pytest.mark.parametrize("sql", CHANGES)
def test_the_application_cannot_change_entries(sql: str, entry: AuditEntry) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"):
        run(sql, entry.pk)
    entry.refresh_from_db()
    assert entry.action == "hold_placed"


@pytest.mark.parametrize("sql", CHANGES)
def test_the_setting_of_the_retention_gives_the_application_no_right(sql: str, entry: AuditEntry) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"):
        run_as_retention(sql, entry.pk)
    assert AuditEntry.objects.filter(pk=entry.pk).exists()


@pytest.mark.parametrize("sql", CHANGES)
def test_the_owner_of_the_tables_cannot_change_entries(sql: str, entry: AuditEntry) -> None:
    with as_table_owner(), pytest.raises(ProgrammingError, match="append-only"):
        run(sql, entry.pk)
    assert AuditEntry.objects.get(pk=entry.pk).action == "hold_placed"


def test_the_owner_can_delete_but_not_change_entries_for_the_retention(entry: AuditEntry) -> None:
    with as_table_owner():
        with pytest.raises(ProgrammingError, match="append-only"):
            run_as_retention(CHANGES[0], entry.pk)
        assert run_as_retention(CHANGES[1], entry.pk) == 1
    assert not AuditEntry.objects.filter(pk=entry.pk).exists()
    # Entries are old when they are deleted, and linked; this one was not.
    UnlinkedEntry.objects.filter(entry_id=entry.pk).delete()


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE moderation_auditentry DISABLE TRIGGER audit_is_append_only",
        "ALTER TABLE moderation_auditentry DISABLE TRIGGER audit_queue",
        "DROP TRIGGER audit_is_append_only ON moderation_auditlink",
    ],
)
def test_a_trigger_that_is_disabled_or_missing_is_noticed(change: str) -> None:
    assert has_triggers()
    with as_table_owner(), transaction.atomic():
        run(change)
        assert not has_triggers()
        transaction.set_rollback(True)
    assert has_triggers()


@pytest.fixture
def granted() -> Iterator[None]:
    """Rights on all tables, granted again, as an administrator may."""
    role = connection.settings_dict["USER"]
    with as_table_owner():
        run(f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "{role}"')
    yield
    with as_table_owner():
        run("SELECT protect_audit_log()")


def test_a_right_on_a_column_is_noticed_and_taken_back(entry: AuditEntry) -> None:
    role = connection.settings_dict["USER"]
    with as_table_owner():
        run(f'GRANT UPDATE (details) ON moderation_auditentry TO "{role}"')
    try:
        assert may_change_audit_log()
    finally:
        with as_table_owner():
            run("SELECT protect_audit_log()")
    with pytest.raises(ProgrammingError, match="permission denied for table"):
        run("UPDATE moderation_auditentry SET details = '{}' WHERE id = %s", entry.pk)
    assert not may_change_audit_log()


def test_rights_that_were_granted_again_are_taken_back(granted: None, entry: AuditEntry) -> None:
    with pytest.raises(ProgrammingError, match="append-only"):
        run(CHANGES[0], entry.pk)
    with as_table_owner():
        run("SELECT protect_audit_log()")
    with pytest.raises(ProgrammingError, match="permission denied for table"):
        run(CHANGES[0], entry.pk)
    record_action("hold_lifted", actor=None)
