"""The hash chain of the audit log: every committed entry is linked once, and whatever is changed is named."""

from __future__ import annotations

import datetime as dt
import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import ProgrammingError, connection, transaction
from pytest_django import Settings

from chatstore.models import Finding, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import work_on_run
from moderation.models import AuditEntry, AuditLink, UnlinkedEntry
from moderation.operations.access.audit import record_action
from moderation.operations.access.audit_chain import Anchor, link_entries, newest_anchor, unlinked_tail, verify_chain
from moderation.operations.access.audit_monitoring import (
    CHANGEABLE_AUDIT_LOG,
    UNLINKED_AFTER,
    UNLINKED_ENTRIES,
    check_audit_log,
    may_change_audit_log,
)
from tests.changed_audit_log import change_audit_log
from tests.cut_connection import run_until
from tests.waiting import LIMIT_SECONDS

ENTRIES = "moderation_auditentry"
LINKS = "moderation_auditlink"


@pytest.fixture
def start() -> int:
    """The position up to which the entries of other tests are linked."""
    while link_entries():
        pass
    newest = newest_anchor()
    return newest.position if newest else 0


@pytest.fixture
def entries(start: int, ada: User) -> list[AuditEntry]:
    """Five linked entries."""
    made = [record_action("hold_placed", actor=ada, channel_id=n, details={"n": n}) for n in range(5)]
    link_entries()
    return made


def problems(start: int) -> list[str]:
    return verify_chain(after=start).problems


@contextmanager
def changed(change: str, repair: str, *params: Any) -> Iterator[None]:
    change_audit_log(change, *params)
    yield
    change_audit_log(repair, *params)


def test_linked_entries_are_verified(start: int, entries: list[AuditEntry]) -> None:
    result = verify_chain(after=start)
    assert not result.problems
    assert result.verified == 5
    assert result.newest == newest_anchor()
    links = AuditLink.objects.filter(position__gt=start).order_by("position")
    assert [link.position for link in links] == list(range(start + 1, start + 6))
    assert {link.entry_id for link in links} == {entry.pk for entry in entries}


@pytest.mark.parametrize(
    "change",
    ["action = 'hold_lifted'", "details = '{}'", "at = at + interval '1 microsecond'", "actor_id = NULL"],
)
def test_a_changed_entry_is_named(change: str, start: int, entries: list[AuditEntry]) -> None:
    wrong = AuditLink.objects.get(position=start + 3)
    entry = AuditEntry.objects.get(pk=wrong.entry_id)
    change_audit_log(f"UPDATE {ENTRIES} SET {change} WHERE id = %s", entry.pk)
    assert problems(start) == [f"Entry {entry.pk} (position {start + 3}) was changed, or inserted into the chain."]
    change_audit_log(
        f"UPDATE {ENTRIES} SET action = %s, details = jsonb_build_object('n', channel_id), at = %s, actor_id = %s "
        "WHERE id = %s",
        entry.action,
        entry.at,
        entry.actor_id,
        entry.pk,
    )
    assert not problems(start)


def test_a_deleted_entry_is_named(start: int, entries: list[AuditEntry]) -> None:
    change_audit_log(f"DELETE FROM {ENTRIES} WHERE id = %s", entries[1].pk)
    (problem,) = problems(start)
    assert problem.startswith(f"Entry {entries[1].pk} (position ")
    assert problem.endswith("is missing.")


def test_an_entry_that_was_inserted_past_the_chain_is_named(start: int, entries: list[AuditEntry]) -> None:
    inserted = entries[0].pk - 1
    sql = f"INSERT INTO {ENTRIES} (id, at, action, details) VALUES (%s, now(), 'hold_lifted', '{{}}')"
    with changed(sql, f"DELETE FROM {ENTRIES} WHERE id = %s", inserted):
        assert problems(start) == [f"Entry {inserted} was inserted past the chain, or its link was deleted."]


def test_an_entry_that_was_inserted_into_the_chain_is_named(start: int, entries: list[AuditEntry]) -> None:
    moved = f"UPDATE {LINKS} SET position = -position WHERE position > {start + 2}; "
    moved += f"UPDATE {LINKS} SET position = 1 - position WHERE position < 0"
    change_audit_log(moved)
    inserted = entries[0].pk - 1
    change_audit_log(
        f"INSERT INTO {ENTRIES} (id, at, action, details) VALUES (%s, now(), 'hold_lifted', '{{}}')", inserted
    )
    change_audit_log(
        f"INSERT INTO {LINKS} (position, entry_id, version, hash) VALUES ({start + 3}, %s, 1, sha256('x'))", inserted
    )
    found = problems(start)
    change_audit_log(f"DELETE FROM {ENTRIES} WHERE id = %s", inserted)
    change_audit_log(f"DELETE FROM {LINKS} WHERE position > {start + 2}")
    change_audit_log(f"DELETE FROM {ENTRIES} WHERE id >= %s", entries[0].pk)
    assert found == [f"Entry {inserted} (position {start + 3}) was changed, or inserted into the chain."]


def test_a_deleted_link_is_named(start: int, entries: list[AuditEntry]) -> None:
    change_audit_log(f"DELETE FROM {LINKS} WHERE position = {start + 2}")
    found = problems(start)
    change_audit_log(f"DELETE FROM {LINKS} WHERE position > {start}")
    change_audit_log(f"DELETE FROM {ENTRIES} WHERE id >= %s", entries[0].pk)
    assert found[0] == f"Position {start + 2} is missing in the chain; the next one is {start + 3}."


def test_an_entry_that_was_deleted_before_it_was_linked_is_named(start: int, ada: User) -> None:
    entry = record_action("hold_placed", actor=ada)
    change_audit_log(f"DELETE FROM {ENTRIES} WHERE id = %s", entry.pk)
    UnlinkedEntry.objects.create(entry_id=entry.pk)
    later = record_action("hold_lifted", actor=ada)
    assert link_entries() == 1
    found = problems(start)
    UnlinkedEntry.objects.filter(entry_id=entry.pk).delete()
    assert found == [f"Entry {entry.pk} was deleted before it was linked."]
    assert AuditLink.objects.filter(entry_id=later.pk).exists()


def test_an_anchor_notices_a_chain_that_was_rewritten_as_a_whole(
    start: int, entries: list[AuditEntry], tmp_path: Path
) -> None:
    anchor = newest_anchor()
    assert anchor is not None
    change_audit_log(f"DELETE FROM {LINKS} WHERE position > {start}")
    change_audit_log(f"UPDATE {ENTRIES} SET action = 'hold_lifted' WHERE id = %s", entries[0].pk)
    UnlinkedEntry.objects.bulk_create(UnlinkedEntry(entry_id=entry.pk) for entry in entries)
    link_entries()
    assert not problems(start)
    file = tmp_path / "anchors"
    file.write_text(f"{anchor.as_json()}\n")
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("audit_verify", "--after", str(start), "--anchor", str(file), stdout=out)
    assert ended.value.code == 1
    assert f"Position {anchor.position} has another hash than its anchor" in out.getvalue()


def test_an_anchor_notices_that_the_newest_entries_are_gone(start: int, entries: list[AuditEntry]) -> None:
    beyond = Anchor(start + 6, "00" * 32)
    (problem,) = verify_chain(after=start, anchors=[beyond]).problems
    assert problem == f"The chain ends before position {start + 6}, which an anchor names."


def test_the_command_counts_entries_without_a_link(start: int, entries: list[AuditEntry]) -> None:
    record_action("hold_lifted", actor=None)
    out = io.StringIO()
    call_command("audit_verify", "--after", str(start), stdout=out, stderr=out)
    assert "verified   5 entries" in out.getvalue()
    assert "not linked 1 newest entries" in out.getvalue()
    assert "warning" not in out.getvalue() or may_change_audit_log()


def test_links_cannot_be_changed(start: int, entries: list[AuditEntry]) -> None:
    for sql in (f"UPDATE {LINKS} SET hash = hash", f"DELETE FROM {LINKS}", f"TRUNCATE {LINKS}"):
        with pytest.raises(ProgrammingError, match="permission denied"), connection.cursor() as cursor:
            cursor.execute(sql)


def test_an_entry_whose_transaction_commits_late_is_linked(start: int, ada: User) -> None:
    recorded, may_commit = threading.Event(), threading.Event()
    late: list[int] = []

    def record_late() -> None:
        try:
            with transaction.atomic():
                late.append(record_action("hold_placed", actor=ada).pk)
                recorded.set()
                may_commit.wait(LIMIT_SECONDS)
        finally:
            connection.close()

    thread = threading.Thread(target=record_late)
    thread.start()
    assert recorded.wait(LIMIT_SECONDS)
    early = record_action("hold_lifted", actor=ada).pk
    assert early > late[0]
    assert link_entries() == 1
    assert not problems(start)
    may_commit.set()
    thread.join()
    assert link_entries() == 1
    links = AuditLink.objects.filter(position__gt=start).order_by("position").values_list("entry_id", flat=True)
    assert list(links) == [early, late[0]]
    assert not problems(start)


def test_eight_writers_and_two_linkers_lose_no_entry(start: int, ada: User) -> None:
    have_ended = threading.Event()

    class RolledBack(Exception):
        pass

    def write(writer: int) -> list[int]:
        kept = []
        for n in range(25):
            try:
                with transaction.atomic():
                    pk = record_action("hold_placed", actor=ada, details={"writer": writer, "n": n}).pk
                    if n % 5 == 4:
                        raise RolledBack
                kept.append(pk)
            except RolledBack:
                pass
        connection.close()
        return kept

    def link() -> None:
        while not have_ended.is_set():
            link_entries()
        connection.close()

    with ThreadPoolExecutor(10) as threads:
        linkers = [threads.submit(link) for _ in range(2)]
        kept = [pk for written in threads.map(write, range(8)) for pk in written]
        have_ended.set()
        for linker in linkers:
            linker.result()
    link_entries()
    links = AuditLink.objects.filter(position__gt=start).values_list("entry_id", flat=True)
    assert sorted(links) == sorted(kept)
    assert len(kept) == 8 * 20
    assert not problems(start)
    assert unlinked_tail().count == 0


def test_a_linker_that_is_killed_between_any_two_statements_loses_nothing(start: int, ada: User) -> None:
    statements = 0
    while True:
        entry = record_action("hold_placed", actor=ada, details={"n": statements})
        if not run_until(statements, link_entries):
            break
        is_waiting = UnlinkedEntry.objects.filter(entry_id=entry.pk).exists()
        assert is_waiting is not AuditLink.objects.filter(entry_id=entry.pk).exists()
        statements += 1
    # The lock, entries to link, their contents, the newest link, the links, and the deletion.
    assert statements >= 6
    assert AuditLink.objects.filter(position__gt=start).count() == statements + 1
    assert not problems(start)


def test_an_old_entry_without_a_link_is_a_finding_until_it_is_linked(start: int, ada: User) -> None:
    record_action("hold_placed", actor=ada)
    check_audit_log(postgres_now())
    assert not Finding.objects.open().filter(kind=UNLINKED_ENTRIES).exists()
    check_audit_log(postgres_now() + UNLINKED_AFTER + dt.timedelta(minutes=1))
    finding = Finding.objects.open().get(kind=UNLINKED_ENTRIES)
    assert str(finding.summary).startswith("1 entry of the audit log is not in the hash chain yet")
    link_entries()
    check_audit_log(postgres_now())
    assert not Finding.objects.open().filter(kind=UNLINKED_ENTRIES).exists()
    assert Finding.objects.open().filter(kind=CHANGEABLE_AUDIT_LOG).exists() == may_change_audit_log()


def test_the_nightly_job_stores_the_newest_hash(
    start: int, entries: list[AuditEntry], settings: Settings, tmp_path: Path
) -> None:
    settings.AUDIT_ANCHOR_PATH, settings.FINDINGS_WEBHOOK_URL = str(tmp_path / "anchors"), ""
    record_action("hold_lifted", actor=None)
    run = work_on_run(JobRun.objects.create(job="audit_anchor", due_at=postgres_now()).pk)
    assert run is not None
    assert run.result == {"linked": 1, "entries": start + 6}
    (line,) = (tmp_path / "anchors").read_text().splitlines()
    assert Anchor.from_json(line) == newest_anchor()
    assert not verify_chain(after=start, anchors=[Anchor.from_json(line)]).problems
