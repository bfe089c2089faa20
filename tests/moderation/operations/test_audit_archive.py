"""Retention of the audit log: entries are deleted only once an archive that was read back has them."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from chatstore.domain.errors import BadInput, Forbidden
from chatstore.models import Finding, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import work_on_run
from moderation.domain.audit_archive import ArchivedRange, name_of_key
from moderation.models import AuditEntry, AuditLink
from moderation.operations.access.audit import record_action
from moderation.operations.access.audit_archive import (
    AUDIT_RETENTION,
    Archive,
    count_removable,
    delete_archived,
    verify_archives,
    write_archives,
)
from moderation.operations.access.audit_chain import Anchor, archived_end, link_entries, newest_anchor, verify_chain
from moderation.store.audit_files import list_archives
from tests.changed_audit_log import change_audit_log
from tests.cut_connection import run_until
from tests.table_owner import as_table_owner

KEY = "a key of the tests, long enough for it"
NEWER = "a newer key of the tests, long enough"
OLD = "2024-05-10T12:00:00Z"


@pytest.fixture
def archive(tmp_path: Path, settings: Settings) -> Archive:
    settings.AUDIT_RETENTION_DAYS, settings.AUDIT_ARCHIVE_DIR = 365, str(tmp_path)
    settings.AUDIT_ARCHIVE_KEY = KEY
    return Archive.from_settings()


@pytest.fixture
def rotated(archive: Archive, begins_after: int, old: list[AuditEntry], settings: Settings) -> Archive:
    """The archive after a file was written and the key was rotated."""
    write_archives(archive)
    settings.AUDIT_ARCHIVE_KEY, settings.AUDIT_ARCHIVE_KEY_FALLBACKS = NEWER, [KEY]
    return Archive.from_settings()


@pytest.fixture
def begins_after(archive: Archive) -> int:
    """Position before the chain: a superuser deletes what other tests left, as if it had been archived."""
    while link_entries():
        pass
    record_action("hold_placed", actor=None)
    link_entries()
    newest = newest_anchor()
    assert newest is not None
    change_audit_log("DELETE FROM moderation_auditentry")
    change_audit_log("DELETE FROM moderation_auditlink WHERE position < %s", newest.position)
    details = {"first": 1, "last": newest.position, "hash": newest.hash, "file": ""}
    record_action("entries_archived", actor=None, details=details)
    link_entries()
    change_audit_log("UPDATE moderation_auditentry SET at = %s", OLD)
    relink()
    return newest.position


def relink() -> None:
    """Compute the chain again, after a change that a superuser made to old entries."""
    end = archived_end()
    assert end is not None
    change_audit_log("DELETE FROM moderation_auditlink WHERE position > %s", end.position)
    change_audit_log(
        "INSERT INTO moderation_unlinkedentry (entry_id) SELECT id FROM moderation_auditentry ON CONFLICT DO NOTHING"
    )
    while link_entries():
        pass


@pytest.fixture
def old(begins_after: int, ada: User) -> list[AuditEntry]:
    """Five entries of 2024, one of them with message ids, and one of today; with that of the fixture 7."""
    made = [record_action("hold_placed", actor=ada, channel_id=n, details={"n": n}) for n in range(4)]
    made.append(record_action("hold_placed", actor=ada, ids=b"packed"))
    change_audit_log("UPDATE moderation_auditentry SET at = %s WHERE id >= %s", OLD, made[0].pk)
    record_action("hold_lifted", actor=ada)
    relink()
    return made


def delete(archive: Archive, actor: User) -> int:
    with as_table_owner():
        return delete_archived(archive, actor=actor)


def problems_of(archive: Archive, after: int, *anchors: Anchor) -> list[str]:
    """Verify the archives from where the tests begin: those before are not in the folder."""
    return verify_archives(archive.folder, keys=archive.keys, after=after, anchors=anchors).problems


def test_old_entries_are_archived_and_newer_ones_are_not(
    archive: Archive, begins_after: int, old: list[AuditEntry]
) -> None:
    (written,) = write_archives(archive)
    assert (written.first, written.last) == (begins_after + 1, begins_after + 6)
    assert count_removable(archive) == 6
    assert AuditEntry.objects.filter(pk__in=[entry.pk for entry in old]).count() == 5
    assert not write_archives(archive)


def test_the_file_has_everything(archive: Archive, old: list[AuditEntry], ada: User) -> None:
    write_archives(archive)
    (file,) = list_archives(archive.folder)
    text = gzip.decompress(file.path.read_bytes()).decode()
    assert text.count('"action":"hold_placed"') == 5
    assert text.count(f'"actor":"{ada.pk}"') == 5
    assert '"packed":"cGFja2Vk"' in text


def test_several_files_follow_each_other(archive: Archive, begins_after: int, old: list[AuditEntry]) -> None:
    written = write_archives(archive, entries_per_file=2)
    assert [(one.first, one.last) for one in written] == [(begins_after + n, begins_after + n + 1) for n in (1, 3, 5)]
    assert [one.previous for one in written[1:]] == [one.hash for one in written[:-1]]


def test_the_owner_deletes_what_is_archived_and_the_chain_goes_on(
    archive: Archive, begins_after: int, old: list[AuditEntry], ada: User
) -> None:
    write_archives(archive, entries_per_file=4)
    assert delete(archive, ada) == 6
    assert not AuditEntry.objects.filter(pk__in=[entry.pk for entry in old]).exists()
    recorded = AuditEntry.objects.filter(action="entries_archived").latest("id")
    assert (recorded.actor, recorded.details["last"]) == (ada, begins_after + 6)
    link_entries()
    result = verify_chain()
    assert not result.problems
    assert (result.archived, result.verified) == (begins_after + 6, 3)
    assert delete(archive, ada) == 0


def test_the_application_may_not_delete_them(archive: Archive, old: list[AuditEntry], ada: User) -> None:
    write_archives(archive)
    with pytest.raises(Forbidden, match="Only the owner of the tables"):
        delete_archived(archive, actor=ada)
    assert AuditEntry.objects.filter(pk__in=[entry.pk for entry in old]).count() == 5


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "another key"])
def test_nothing_is_deleted_without_a_right_archive(
    damage: str, archive: Archive, old: list[AuditEntry], ada: User
) -> None:
    write_archives(archive, entries_per_file=3)
    first = list_archives(archive.folder)[0]
    content = first.path.read_bytes()
    match damage:
        case "cut":
            first.path.write_bytes(content[:-20])
        case "changed":
            text = gzip.decompress(content).replace(b"hold_placed", b"hold_lifted", 1)
            first.path.write_bytes(gzip.compress(text))
        case "gone":
            first.path.unlink()
        case _:
            archive = Archive(archive.folder, b"another key of the tests, long enough", archive.days)
    with pytest.raises(BadInput, match="Nothing of it was deleted"):
        delete(archive, ada)
    assert AuditEntry.objects.filter(pk__in=[entry.pk for entry in old]).count() == 5


def test_nothing_is_deleted_if_the_database_was_changed_meanwhile(
    archive: Archive, old: list[AuditEntry], ada: User
) -> None:
    write_archives(archive)
    change_audit_log("UPDATE moderation_auditentry SET action = 'hold_lifted' WHERE id = %s", old[2].pk)
    with pytest.raises(BadInput, match="was changed"):
        delete(archive, ada)
    change_audit_log("UPDATE moderation_auditentry SET action = 'hold_placed' WHERE id = %s", old[2].pk)
    assert delete(archive, ada) == 6


def test_an_entry_that_was_changed_is_not_archived(archive: Archive, old: list[AuditEntry]) -> None:
    change_audit_log("UPDATE moderation_auditentry SET action = 'hold_lifted' WHERE id = %s", old[2].pk)
    with pytest.raises(BadInput, match=f"entry {old[2].pk} .* was changed"):
        write_archives(archive)
    assert list(archive.folder.iterdir()) == []
    change_audit_log("UPDATE moderation_auditentry SET action = 'hold_placed' WHERE id = %s", old[2].pk)


def test_a_longer_retention_keeps_what_is_archived(archive: Archive, old: list[AuditEntry], ada: User) -> None:
    write_archives(archive)
    longer = Archive(archive.folder, archive.key, days=36_500)
    assert delete(longer, ada) == 0


def test_a_writer_that_was_killed_leaves_nothing_that_counts(
    archive: Archive, begins_after: int, old: list[AuditEntry]
) -> None:
    (archive.folder / ".audit-77.part").write_bytes(b"half a file")
    written = write_archives(archive)
    assert [path.name for path in archive.folder.iterdir()] == [
        f"audit-{begins_after + 1:012d}-{begins_after + 6:012d}.jsonl.gz"
    ]
    first = list_archives(archive.folder)[0].path.read_bytes()
    list_archives(archive.folder)[0].path.unlink()
    assert write_archives(archive) == written
    assert list_archives(archive.folder)[0].path.read_bytes() == first


def test_a_deletion_that_is_killed_between_any_two_statements_is_whole_or_nothing(
    archive: Archive, begins_after: int, old: list[AuditEntry], ada: User
) -> None:
    write_archives(archive, entries_per_file=3)
    statements = 0
    with as_table_owner():
        while run_until(statements, lambda: delete_archived(archive, actor=ada)):
            end = archived_end()
            assert end is not None
            left = AuditEntry.objects.exclude(action="entries_archived").filter(at__lt="2025-01-01T00:00Z").count()
            assert (end.position - begins_after, left) in ((0, 5), (3, 3), (6, 0))
            statements += 1
    assert statements > 10
    link_entries()
    assert not verify_chain().problems
    assert not problems_of(archive, begins_after)


def test_what_the_former_key_signed_is_verified_and_deleted_after_a_rotation(
    rotated: Archive, begins_after: int, ada: User
) -> None:
    out = io.StringIO()
    call_command(
        "audit_verify", "--archives", str(rotated.folder), "--after", str(begins_after), stdout=out, stderr=out
    )
    assert f"signed     1 by key {name_of_key(KEY.encode())}" in out.getvalue()
    assert delete(rotated, ada) == 6
    link_entries()
    assert not problems_of(rotated, begins_after)


def test_new_files_are_signed_with_the_new_key_and_continue_the_old_ones(rotated: Archive, begins_after: int) -> None:
    change_audit_log("UPDATE moderation_auditentry SET at = %s WHERE action = 'hold_lifted'", OLD)
    relink()
    (written,) = write_archives(rotated)
    assert (written.first, written.key) == (begins_after + 7, name_of_key(NEWER.encode()))
    result = verify_archives(rotated.folder, keys=rotated.keys, after=begins_after)
    assert not result.problems
    assert result.signed == {name_of_key(key.encode()): 1 for key in (KEY, NEWER)}


def test_a_key_that_is_no_longer_set_is_named(
    rotated: Archive, begins_after: int, ada: User, settings: Settings
) -> None:
    settings.AUDIT_ARCHIVE_KEY_FALLBACKS = []
    alone = Archive.from_settings()
    (file,) = list_archives(rotated.folder)
    keys = f"{name_of_key(KEY.encode())}; known are {name_of_key(NEWER.encode())}"
    (problem,) = problems_of(alone, begins_after)
    assert problem == f"{file.path.name}: it was signed with another key, {keys}."
    with pytest.raises(BadInput, match=f"another key, {keys}. Nothing of it was deleted"):
        delete(alone, ada)
    with pytest.raises(BadInput, match=f"another key, {keys}"):
        write_archives(alone)


@pytest.fixture
def deleted(archive: Archive, old: list[AuditEntry], ada: User) -> list[ArchivedRange]:
    """Two archives, of which both are deleted from the database."""
    written = write_archives(archive, entries_per_file=3)
    delete(archive, ada)
    link_entries()
    return written


def test_the_archives_are_verified_with_their_anchors(
    archive: Archive, begins_after: int, deleted: list[ArchivedRange]
) -> None:
    right = Anchor(deleted[0].last, deleted[0].hash.hex())
    assert not problems_of(archive, begins_after, right)
    (problem,) = problems_of(archive, begins_after, Anchor(deleted[0].last - 1, right.hash))
    assert problem.endswith(f": position {deleted[0].last - 1} has another hash than its anchor.")


def test_an_archive_that_was_changed_or_taken_away_is_named(
    archive: Archive, begins_after: int, deleted: list[ArchivedRange]
) -> None:
    first, second = list_archives(archive.folder)
    content = second.path.read_bytes()
    second.path.unlink()
    (problem,) = problems_of(archive, begins_after)
    assert problem == f"Positions {second.first} to {second.last} are deleted, but in no archive."
    second.path.write_bytes(content[:-9])
    (problem,) = problems_of(archive, begins_after)
    assert problem == f"{second.path.name}: it is damaged or incomplete."
    second.path.write_bytes(content)
    first.path.unlink()
    (problem,) = problems_of(archive, begins_after)
    assert problem == f"Positions {first.first} to {first.last} are in no archive."


def test_archives_of_the_beginning_that_are_missing_are_named(
    archive: Archive, begins_after: int, deleted: list[ArchivedRange]
) -> None:
    (problem,) = verify_archives(archive.folder, keys=archive.keys).problems
    assert problem == f"Positions 1 to {begins_after} are in no archive."


def test_a_chain_that_ends_before_its_archives_is_named(
    archive: Archive, begins_after: int, deleted: list[ArchivedRange]
) -> None:
    end = deleted[-1].last
    change_audit_log("DELETE FROM moderation_auditlink WHERE position = %s", end)
    problem = problems_of(archive, begins_after)[-1]
    assert problem == f"Position {end} is archived, but the chain in the database does not reach it."


def test_entries_that_were_deleted_without_an_archive_are_named(
    archive: Archive, old: list[AuditEntry], ada: User
) -> None:
    links = AuditLink.objects.filter(entry_id=old[2].pk)
    position = links.get().position
    change_audit_log("DELETE FROM moderation_auditentry WHERE id < %s", old[2].pk)
    change_audit_log("DELETE FROM moderation_auditlink WHERE position < %s", position)
    problems = verify_chain(after=position - 1).problems
    assert problems == [f"Position {position - 1} is missing in the chain."]


def test_the_nightly_job_writes_and_reports_what_can_be_deleted(
    archive: Archive, old: list[AuditEntry], ada: User
) -> None:
    def run() -> JobRun:
        ended = work_on_run(JobRun.objects.create(job="audit_archive", due_at=postgres_now()).pk)
        assert ended is not None
        return ended

    assert run().result == {"archived": 6, "removable": 6}
    finding = Finding.objects.open().get(kind=AUDIT_RETENTION)
    assert str(finding.summary).startswith("6 entries of the audit log are archived and can be deleted")
    delete(archive, ada)
    assert run().result == {"archived": 0, "removable": 0}
    assert not Finding.objects.open().filter(kind=AUDIT_RETENTION).exists()


def test_without_the_setting_nothing_is_archived(settings: Settings) -> None:
    settings.AUDIT_RETENTION_DAYS = 0
    run = work_on_run(JobRun.objects.create(job="audit_archive", due_at=postgres_now()).pk)
    assert run is not None
    assert (run.state, run.result) == ("done", {})
    with pytest.raises(CommandError, match="kept forever"):
        call_command("audit_archive")


def test_the_command_archives_and_verifies(archive: Archive, begins_after: int, old: list[AuditEntry]) -> None:
    out = io.StringIO()
    call_command("audit_archive", stdout=out)
    assert f"archived   positions {begins_after + 1:,} to {begins_after + 6:,}" in out.getvalue()
    assert "removable  6 entries" in out.getvalue()
    with pytest.raises(CommandError, match="Only the owner"):
        call_command("audit_archive", "--delete", stdout=out)
    with as_table_owner():
        call_command("audit_archive", "--delete", stdout=out)
    assert "deleted    6 entries" in out.getvalue()
    link_entries()
    out = io.StringIO()
    call_command("audit_verify", stdout=out, stderr=out)
    assert f"archived   positions up to {begins_after + 6:,}, not verified here" in out.getvalue()
    call_command(
        "audit_verify", "--archives", str(archive.folder), "--after", str(begins_after), stdout=out, stderr=out
    )
    assert "archives   1 files with 6 entries verified" in out.getvalue()
