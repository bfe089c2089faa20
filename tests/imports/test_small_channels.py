"""Many small channels imported together: as correct as one by one, at the cost of a large one, all in the ledger."""

from __future__ import annotations

import gc
import json
import threading
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import WriteRefused
from chatstore.domain.live import Live
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel, lock_channels, lock_owner
from chatstore.operations.importing.completion import refresh_buckets
from chatstore.operations.importing.discord import ImportSummary
from chatstore.store import cassandra, ledger
from chatstore.store.figures import read_figures
from chatstore.store.reading.reader import read_page
from moderation.operations.undo.import_guard import DeletedIds, restore_on_import_as
from tests.clock_jumps import postgres_off
from tests.imports.exports import (
    MAY,
    VICTOR,
    WANDA,
    fresh_channel,
    ids_from,
    live_ids,
    make_export,
    make_raw,
    run_import,
    taken_over,
    write_export,
)
from tests.moderation.channels import choose, purge_now

BUCKET_SECONDS = 864_000


def test_every_channel_gets_its_own_messages_although_their_ids_are_equal(tmp_path: Path) -> None:
    ids = ids_from(MAY, 8, apart_seconds=BUCKET_SECONDS / 3)
    channels = [fresh_channel() for _ in range(40)]
    for number, channel_id in enumerate(channels):
        raws = [make_raw(i, content=f"{number} {i}", author=(VICTOR, WANDA)[number % 2]) for i in ids[number % 5 :]]
        write_export(tmp_path / f"{number:03d}.json", channel_id, raws, name=f"thread {number}")
    summary = run_import(tmp_path)
    assert (summary.channels, summary.files, summary.failed_files) == (40, 40, [])
    for number, channel_id in enumerate(channels):
        page = read_page(channel_id, limit=50).messages
        assert [(m.message_id, m.content) for m in page] == [(i, f"{number} {i}") for i in ids[number % 5 :][::-1]]
        assert Channel.objects.get(id=channel_id).name == f"thread {number}"
        assert lock_owner(channel_id) is None
    assert summary.written == summary.messages == sum(8 - number % 5 for number in range(40))
    again = run_import(tmp_path)
    assert (again.written, again.already_there) == (0, summary.written)


def test_the_ledger_has_every_imported_bucket(tmp_path: Path) -> None:
    ids = ids_from(MAY, 9, apart_seconds=BUCKET_SECONDS / 2)
    channels = [fresh_channel() for _ in range(5)]
    for number, channel_id in enumerate(channels):
        write_export(tmp_path / f"{number}.json", channel_id, [make_raw(i) for i in ids])
    for half in (0, 1):
        # The second import has more messages in each bucket.
        more = [i + half for i in ids]
        for number, channel_id in enumerate(channels):
            write_export(tmp_path / f"{number}.json", channel_id, [make_raw(i) for i in {*ids, *more}])
        run_import(tmp_path)
        for channel_id in channels:
            expected = {
                bucket: Live(min(found), max(found), len(found))
                for bucket in {bucket_of(i) for i in ids}
                if (found := sorted(i for i in {*ids, *more} if bucket_of(i) == bucket))
            }
            assert dict(ledger.read_ledger(channel_id)) == expected
            figures = read_figures(channel_id)
            assert {bucket: figures[bucket]["live_rows"].value for bucket in expected} == {
                bucket: live.count for bucket, live in expected.items()
            }


def test_a_channel_locked_by_another_job_is_imported_once_it_is_free(tmp_path: Path) -> None:
    ids = ids_from(MAY, 5)
    channels = [fresh_channel() for _ in range(3)]
    for number, channel_id in enumerate(channels):
        write_export(tmp_path / f"{number}.json", channel_id, [make_raw(i) for i in ids])
    assert lock_channel(channels[1], job="import:dead", lease_seconds=1.0)
    summary = run_import(tmp_path)
    assert (summary.written, summary.failed_files) == (15, [])
    assert [live_ids(channel_id, ids) for channel_id in channels] == [ids] * 3


def test_a_lost_lock_is_reported_with_all_files_imported_together(tmp_path: Path) -> None:
    ids = ids_from(MAY, 5)
    channels = [fresh_channel() for _ in range(3)]
    for number, channel_id in enumerate(channels):
        write_export(tmp_path / f"{number}.json", channel_id, [make_raw(i) for i in ids])
    with taken_over(channels[1]) as deleted_ids:
        summary = run_import(tmp_path, deleted_ids=deleted_ids)
    assert len(summary.failed_files) == 3
    assert all(f"channel {channels[1]} was taken over" in each.reason for each in summary.failed_files)
    assert [lock_owner(channel_id) for channel_id in channels] == [None] * 3
    assert run_import(tmp_path).is_whole
    assert [live_ids(channel_id, ids) for channel_id in channels] == [ids] * 3


def test_only_the_taken_channel_is_lost(tmp_path: Path) -> None:
    ids = ids_from(MAY, 5)
    busy, lost = fresh_channel(), fresh_channel()
    for channel_id in (busy, lost):
        write_export(tmp_path / f"{channel_id}.json", channel_id, [make_raw(i) for i in ids])
    assert lock_channel(busy, job="import:dead", lease_seconds=1.0)
    with taken_over(lost) as deleted_ids:
        summary = run_import(tmp_path, deleted_ids=deleted_ids)
    assert [each.file for each in summary.failed_files] == [str(tmp_path / f"{lost}.json")]
    assert live_ids(busy, ids) == ids


def test_channels_of_a_killed_import_are_imported_once_their_locks_lapse(tmp_path: Path) -> None:
    ids = ids_from(MAY, 5)
    channels = [fresh_channel() for _ in range(6)]
    for channel_id in channels:
        write_export(tmp_path / f"{channel_id}.json", channel_id, [make_raw(i) for i in ids])
    assert lock_channels(channels, job="import:dead", lease_seconds=1.0) == set(channels)
    requested: list[set[int]] = []

    def deleted_ids(channel_ids: Collection[int]) -> Callable[[int, int], Collection[int]]:
        requested.append(set(channel_ids))
        return lambda channel_id, bucket: ()

    summary = run_import(tmp_path, deleted_ids=deleted_ids)
    assert (summary.written, summary.failed_files) == (30, [])
    assert requested == [set(channels)]


def test_two_imports_of_the_same_channels_at_once_write_each_message_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatstore.operations.importing.discord.MAX_GROUP_CHANNELS", 4)
    ids = ids_from(MAY, 6, apart_seconds=BUCKET_SECONDS / 2)
    channels = [fresh_channel() for _ in range(24)]
    for channel_id in channels:
        write_export(tmp_path / f"{channel_id}.json", channel_id, [make_raw(i) for i in ids])
    summaries: list[ImportSummary] = []

    def import_all() -> None:
        try:
            summaries.append(run_import(tmp_path))
        finally:
            connection.close()

    threads = [threading.Thread(target=import_all) for _ in range(2)]
    threshold = gc.get_threshold()
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*threshold)
    assert [summary.failed_files for summary in summaries] == [[], []]
    assert sum(summary.written for summary in summaries) == 24 * 6
    assert sum(summary.already_there for summary in summaries) == 24 * 6
    for channel_id in channels:
        assert live_ids(channel_id, ids) == ids
        assert lock_owner(channel_id) is None
        assert all(live.is_known for _, live in ledger.read_ledger(channel_id))


def test_the_ledger_is_not_updated_while_the_clocks_disagree(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 5)
    run_import(write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids]))
    key = channel_id, bucket_of(ids[0])
    ledger.clear_live(*key)
    with postgres_off(40), pytest.raises(WriteRefused):
        refresh_buckets([key], job="import:1", check=lambda: None)
    live = ledger.read_live(*key)
    assert live is not None
    assert not live.is_known


def test_purged_messages_are_not_imported_again(mona: User, tmp_path: Path) -> None:
    ids = ids_from(MAY, 6)
    channels = [fresh_channel() for _ in range(3)]
    for number, channel_id in enumerate(channels):
        write_export(tmp_path / f"{number}.json", channel_id, [make_raw(i) for i in ids])
    run_import(tmp_path)
    purge_now(mona, choose(channels[0], message_ids=tuple(ids[:2])))
    purge_now(mona, choose(channels[2], message_ids=tuple(ids[3:])))
    again = run_import(tmp_path, deleted_ids=DeletedIds)
    assert (again.written, again.already_there, again.deleted_before) == (0, 13, 5)
    assert [live_ids(channel_id, ids) for channel_id in channels] == [ids[2:], ids, ids[:3]]
    back = run_import(tmp_path, deleted_ids=DeletedIds, on_restored=restore_on_import_as(mona), restore=True)
    assert (back.written, back.restored) == (5, 5)


def test_small_threads_cost_a_few_statements_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = ids_from(MAY, 12, apart_seconds=600)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for number in range(200):
            raws = [make_raw(i, author=VICTOR + index % 4) for index, i in enumerate(ids)]
            archive.writestr(f"{number:03d}.json", json.dumps(make_export(fresh_channel(), raws)))
    sent = 0
    send = cassandra._send

    def count(*args: Any, **options: Any) -> cassandra.Pending:
        nonlocal sent
        sent += 1
        return send(*args, **options)

    monkeypatch.setattr(cassandra, "_send", count)
    with CaptureQueriesContext(connection) as queries:
        summary = run_import(tmp_path, deleted_ids=DeletedIds)
    assert (summary.channels, summary.written) == (200, 2_400)
    # Counts batches of messages and whole reads; everything else is shared.
    assert sent < 3 * 200
    assert len(queries) < 40
