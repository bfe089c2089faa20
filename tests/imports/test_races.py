"""Concurrency during an import: edits, withdrawals, other jobs, purges, a killed process."""

import dataclasses
import datetime as dt
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel, lock_owner, release_channel
from chatstore.operations.gateway.messages import edit_message, withdraw_message
from chatstore.operations.importing.loads import finish_load, start_load
from chatstore.store import ledger
from chatstore.store.messages import read_message, update_columns
from moderation.domain.packing import unpack_ids
from moderation.models import AuditEntry
from moderation.operations.steps.deleted_ids import deleted_ids
from moderation.operations.undo.import_guard import DeletedIds, restore_on_import_as
from tests.imports.exports import (
    MAY,
    VICTOR,
    decide,
    fresh_channel,
    ids_from,
    live_ids,
    make_raw,
    read,
    run_import,
    write_export,
)
from tests.moderation.channels import choose, purge_now


def test_an_edit_made_during_an_import_wins(tmp_path: Path) -> None:
    channel_id, [message_id] = fresh_channel(), ids_from(MAY, 1)
    run_import(write_export(tmp_path / "a.json", channel_id, [make_raw(message_id)]))
    exported = dataclasses.replace(
        read(channel_id, message_id), content="exported", edited_at=MAY + dt.timedelta(days=1)
    )
    decision = decide(exported)
    assert sum(map(len, decision.changed.values())) == 1
    edit_message(channel_id, message_id, actor=VICTOR, content="by hand")
    finish_load(start_load(decision))
    assert read(channel_id, message_id).content == "by hand"


def test_messages_withdrawn_during_an_import_are_not_kept() -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    decision = decide(*(Message(channel_id, i, VICTOR, "hello") for i in ids))
    withdraw_message(channel_id, ids[1], actor=VICTOR)
    started = start_load(decision)
    assert finish_load(started) == {(channel_id, ids[1])}
    assert live_ids(channel_id, ids) == [ids[0], ids[2]]


def test_deleting_a_withdrawn_import_hits_nothing_newer() -> None:
    channel_id, [message_id] = fresh_channel(), ids_from(MAY, 1)
    decision = decide(Message(channel_id, message_id, VICTOR, "imported"))
    started = start_load(decision)
    withdraw_message(channel_id, message_id, actor=VICTOR)
    later = time.time_ns() // 1000 + 1_000_000
    update_columns(channel_id, message_id, {"author_id": VICTOR, "content": "again"}, stamp_us=later)
    finish_load(started)
    assert read(channel_id, message_id).content == "again"


def test_an_import_does_not_restore_withdrawn_messages(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 10)
    path = write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids])
    run_import(path)
    withdraw_message(channel_id, ids[4], actor=VICTOR)
    for restore in (False, True):
        summary = run_import(path, restore=restore)
        assert (summary.written, summary.deleted_before) == (0, 1)
    assert read_message(channel_id, ids[4]) is None


def test_an_import_writes_messages_claimed_only_by_others(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 10)
    for actor, message_id in ((VICTOR, ids[4]), (VICTOR + 1, ids[4]), (VICTOR + 1, ids[5])):
        withdraw_message(channel_id, message_id, actor=actor)
    summary = run_import(write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids]))
    assert (summary.written, summary.deleted_before) == (9, 1)
    assert live_ids(channel_id, ids) == [i for i in ids if i != ids[4]]


def test_messages_claimed_by_others_during_an_import_are_kept() -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    decision = decide(*(Message(channel_id, i, VICTOR, "hello") for i in ids))
    withdraw_message(channel_id, ids[1], actor=VICTOR + 1)
    assert finish_load(start_load(decision)) == set()
    assert live_ids(channel_id, ids) == ids


def test_an_import_restores_purged_messages_only_on_request(mona: User, tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 30)
    path = write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids])
    run_import(path)
    purge_now(mona, choose(channel_id, message_ids=tuple(ids[:12])))
    assert live_ids(channel_id, ids) == ids[12:]
    again = run_import(path, deleted_ids=DeletedIds)
    assert (again.written, again.already_there, again.deleted_before) == (0, 18, 12)
    assert live_ids(channel_id, ids) == ids[12:]
    back = run_import(path, deleted_ids=DeletedIds, on_restored=restore_on_import_as(mona), restore=True)
    assert (back.written, back.restored, back.deleted_before) == (12, 12, 0)
    assert live_ids(channel_id, ids) == ids
    assert deleted_ids(channel_id, bucket_of(ids[0])) == set()


def test_only_the_last_purge_accounts_for_messages_restored_in_between(mona: User, tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 10)
    path = write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids])
    run_import(path)
    bucket = bucket_of(ids[0])
    first = purge_now(mona, choose(channel_id, message_ids=tuple(ids[:6])))
    # A run that died after writing and before it recorded the restored ids.
    run_import(path, deleted_ids=DeletedIds, restore=True)
    assert deleted_ids(channel_id, bucket) == set(ids[:6])
    again = run_import(path, deleted_ids=DeletedIds, on_restored=restore_on_import_as(mona), restore=True)
    assert (again.written, again.restored) == (0, 0)
    assert deleted_ids(channel_id, bucket) == set()
    entries = AuditEntry.objects.filter(purge=first, action="restored_by_import")
    [entry] = entries
    assert (entry.details["bucket"], entry.details["ids"], entry.actor, unpack_ids(entry.ids)) == (
        bucket,
        6,
        mona,
        ids[:6],
    )
    purge_now(mona, choose(channel_id, message_ids=tuple(ids[4:])))
    assert deleted_ids(channel_id, bucket) == set(ids[4:])
    run_import(path, deleted_ids=DeletedIds, on_restored=restore_on_import_as(mona))
    assert live_ids(channel_id, ids) == ids[:4]


def test_a_row_without_an_author_is_not_a_message(tmp_path: Path) -> None:
    channel_id, [message_id] = fresh_channel(), ids_from(MAY, 1)
    ledger.ensure_row(channel_id, bucket_of(message_id))
    update_columns(channel_id, message_id, {"content": "edited"}, stamp_us=time.time_ns() // 1000 - 60_000_000)
    summary = run_import(write_export(tmp_path / "a.json", channel_id, [make_raw(message_id)]))
    assert summary.written == 1
    assert read(channel_id, message_id).author_id == VICTOR


def test_a_channel_locked_by_another_job_is_reported(tmp_path: Path) -> None:
    locked, free, ids = fresh_channel(), fresh_channel(), ids_from(MAY, 5)
    write_export(tmp_path / "locked.json", locked, [make_raw(i) for i in ids])
    write_export(tmp_path / "free.json", free, [make_raw(i) for i in ids])
    assert lock_channel(locked, job="purge:17")
    try:
        # It waits a lease and five seconds for a lock that may lapse.
        summary = run_import(tmp_path, lease_seconds=0.5)
    finally:
        release_channel(locked, job="purge:17")
    [failed] = summary.failed_files
    assert failed.file.endswith("locked.json")
    assert "locked by purge:17" in failed.reason
    assert summary.written == 5
    assert not ledger.read_ledger(locked)
    assert live_ids(free, ids) == ids


def test_a_lapsed_lease_is_taken_over_and_released(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 5)
    assert lock_channel(channel_id, job="import:dead", lease_seconds=1.0)
    summary = run_import(write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids]))
    assert summary.written == 5
    assert lock_owner(channel_id) is None


def test_an_import_that_lost_its_lock_stops(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 9_000)
    path = write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids])

    def take_over(channel: int, bucket: int) -> Collection[int]:
        # As if this process had been suspended for longer than its lease.
        release_channel(channel, job=str(lock_owner(channel)))
        lock_channel(channel, job="purge:18")
        time.sleep(0.2)
        return ()

    try:
        summary = run_import(path, deleted_ids=lambda channels: take_over, lease_seconds=0.5)
        assert "taken over" in summary.failed_files[0].reason
        assert lock_owner(channel_id) == "purge:18"
        assert summary.messages < 9_000
    finally:
        release_channel(channel_id, job="purge:18")


def test_a_short_outage_of_the_store_is_waited_out(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 5)
    refusals = iter([StoreUnavailable("a node is restarting")])

    def read_deleted(channel: int, bucket: int) -> Collection[int]:
        for refusal in refusals:
            raise refusal
        return ()

    summary = run_import(
        write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids]),
        deleted_ids=lambda channels: read_deleted,
    )
    assert (summary.written, summary.already_there) == (5, 0)
    assert summary.is_whole


_CHILD = """
import sys, django
django.setup()
from pathlib import Path
from chatstore.operations.importing.discord import ImportChoices, import_discord
import_discord([Path(sys.argv[1])], choices=ImportChoices(deleted_ids=lambda ids: lambda c, b: (), lease_seconds=2.0))
"""


@pytest.mark.slow
@pytest.mark.parametrize("after_messages", [1, 6_000])
def test_a_killed_import_repeated_ends_with_the_same_state(tmp_path: Path, after_messages: int) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 20_000, apart_seconds=100)
    path = write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids])
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    child = subprocess.Popen([sys.executable, "-c", _CHILD, str(path)], env=env)
    last_of_part = ids[after_messages - 1]
    while child.poll() is None and read_message(channel_id, last_of_part) is None:
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL, "it was to be killed while it wrote"
    there = len(live_ids(channel_id, ids))
    assert there < len(ids)
    summary = run_import(path)
    assert summary.written + summary.already_there == len(ids)
    assert summary.already_there >= there
    assert live_ids(channel_id, ids) == ids
    assert lock_owner(channel_id) is None
    assert Channel.objects.filter(id=channel_id).exists()
