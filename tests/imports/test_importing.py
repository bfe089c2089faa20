"""Imports into the real store: messages written, kept, replaced or refused, and the summary."""

import datetime as dt
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.live import UNKNOWN, Live
from chatstore.models import Channel, ChatUser, Guild
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.store import cassandra, ledger
from chatstore.store.authors import author_buckets
from chatstore.store.figures import read_figures
from chatstore.store.messages import newest_writetime
from chatstore.store.reading.reader import read_page
from chatstore.store.traces import execute_traced
from tests.imports.exports import (
    MAY,
    VICTOR,
    WANDA,
    fresh_channel,
    ids_from,
    live_ids,
    make_export,
    make_raw,
    make_user,
    read,
    run_import,
    write_export,
)
from tests.pins import pinned_ids

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "left \u202eright-to-left\u202c left",
    "a NUL \0 in the middle",
    "👩‍👩‍👧‍👦" * 2_000,
    "w" * 50_000,
    "[" * 3_000 + '"\\' * 500,
)


def test_imported_messages_can_be_read(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 250)
    raws = [make_raw(message_id, author=(VICTOR, WANDA)[message_id % 2]) for message_id in ids]
    summary = run_import(write_export(tmp_path / "pier.json", channel_id, raws))
    assert (summary.files, summary.channels, summary.messages, summary.written) == (1, 1, 250, 250)
    assert summary.is_whole
    page = read_page(channel_id, limit=100)
    assert [message.message_id for message in page.messages] == ids[:-101:-1]
    assert page.messages[0].content == f"message {ids[-1]}"


def test_importing_twice_changes_nothing(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 150)
    raws = [make_raw(message_id, timestampEdited="2024-05-05T10:00:00+00:00") for message_id in ids]
    path = write_export(tmp_path / "pier.json", channel_id, raws)
    run_import(path)
    before = newest_writetime(channel_id, ids[0])
    again = run_import(path)
    assert (again.written, again.updated, again.already_there) == (0, 0, 150)
    assert newest_writetime(channel_id, ids[0]) == before
    assert again.is_whole


def test_only_a_later_edit_replaces_an_existing_message(tmp_path: Path) -> None:
    channel_id, [message_id] = fresh_channel(), ids_from(MAY, 1)

    def import_edit(content: str, edited: str | None, **keys: Any) -> tuple[int, int]:
        raw = make_raw(message_id, content=content, timestampEdited=edited, **keys)
        summary = run_import(write_export(tmp_path / "pier.json", channel_id, [raw]))
        return summary.updated, summary.already_there

    attachment = {"id": "1", "url": "https://f.example/a.png", "fileName": "a.png", "fileSizeBytes": 3}
    import_edit("first", None, attachments=[attachment], isPinned=True)
    assert import_edit("unedited", None) == (0, 1)
    assert import_edit("second", "2024-05-04T10:00:00+00:00") == (1, 0)
    assert import_edit("older", "2024-05-04T09:59:59.999+00:00") == (0, 1)
    assert import_edit("same", "2024-05-04T10:00:00+00:00") == (0, 1)
    message = read(channel_id, message_id)
    assert (message.content, list(message.attachments)) == ("second", [])
    assert message.pinned, "an edit does not take the pin off"


def test_an_edit_replaces_without_a_tombstone(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 30)
    run_import(write_export(tmp_path / "a.json", channel_id, [make_raw(i, flags=4) for i in ids]))
    edited = [make_raw(i, content="new", timestampEdited="2024-06-01T00:00:00Z") for i in ids]
    assert run_import(write_export(tmp_path / "b.json", channel_id, edited)).updated == 30
    cql = "SELECT * FROM messages WHERE channel_id = ? AND bucket = ?"
    traced = execute_traced(cql, (channel_id, bucket_of(ids[0])), consistency=cassandra.ALL)
    assert (traced.live, traced.tombstones) == (30, 0)


def test_the_files_of_a_channel_are_one_import(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 90)
    for number, start in enumerate((0, 30, 60), start=1):
        name = "pier.json" if number == 1 else f"pier [part {number}].json"
        # Each part repeats the last message of the previous one.
        part = ids[max(start - 1, 0) : start + 30]
        write_export(tmp_path / name, channel_id, [make_raw(i) for i in part])
    summary = run_import(tmp_path)
    assert (summary.files, summary.channels) == (3, 1)
    assert (summary.messages, summary.written, summary.already_there) == (92, 90, 2)
    assert live_ids(channel_id, ids) == ids


def test_of_two_messages_with_one_id_the_later_edit_is_kept(tmp_path: Path) -> None:
    channel_id, [message_id] = fresh_channel(), ids_from(MAY, 1)
    raws = [
        make_raw(message_id, content="early", timestampEdited="2024-05-04T00:00:00Z"),
        make_raw(message_id, content="late", timestampEdited="2024-05-05T00:00:00Z"),
        make_raw(message_id, content="never edited"),
    ]
    summary = run_import(write_export(tmp_path / "pier.json", channel_id, raws))
    assert (summary.written, summary.updated, summary.already_there) == (1, 1, 1)
    assert read(channel_id, message_id).content == "late"


def test_an_archive_and_a_folder_are_imported_alike(tmp_path: Path) -> None:
    channels = [fresh_channel(), fresh_channel()]
    ids = ids_from(MAY, 20)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("a.json", json.dumps(make_export(channels[0], [make_raw(i) for i in ids])))
    write_export(tmp_path / "b.json", channels[1], [make_raw(i) for i in ids])
    summary = run_import(tmp_path)
    assert (summary.files, summary.written) == (2, 40)
    assert [live_ids(channel_id, ids) for channel_id in channels] == [ids, ids]


def test_failures_are_named_and_the_rest_continues(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 200)
    raws = [make_raw(i) for i in ids]
    whole = write_export(tmp_path / "cut.json", channel_id, raws).read_bytes()
    (tmp_path / "cut.json").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "package.json").write_text('{"name": "left-pad"}')
    write_export(tmp_path / "nameless.json", channel_id, raws, id=None)
    odd = [make_raw(ids[0], id="abc"), *raws[150:]]
    write_export(tmp_path / "odd.json", channel_id, odd)
    summary = run_import(tmp_path)
    reasons = {Path(each.file).name: each.reason for each in summary.failed_files}
    assert reasons.keys() == {"cut.json", "package.json", "nameless.json"}
    assert "unexpected end of file" in reasons["cut.json"]
    assert "not an export" in reasons["package.json"]
    assert "no id" in reasons["nameless.json"]
    assert summary.rejected == 1
    assert "“abc” is not an ID" in summary.rejections["no valid id"].first.reason
    assert not summary.is_whole
    there = live_ids(channel_id, ids)
    assert there == sorted({*ids[: summary.written - 50], *ids[150:]})
    assert len(there) == summary.written > 140


def test_every_message_is_counted_once(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 60)
    run_import(write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids[:30]]))
    withdraw_message(channel_id, ids[50], actor=VICTOR)
    edited = [make_raw(i, timestampEdited="2024-06-01T00:00:00Z") for i in ids[:10]]
    raws = [*edited, *(make_raw(i) for i in ids[10:]), make_raw(ids[0], id="12")]
    summary = run_import(write_export(tmp_path / "b.json", channel_id, raws))
    counts = (summary.written, summary.already_there, summary.updated, summary.deleted_before, summary.rejected)
    assert counts == (29, 20, 10, 1, 1)
    assert sum(counts) == summary.messages


def test_a_dry_run_reports_the_same_and_writes_nothing(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 40)
    run_import(write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids[:10]]))
    other = fresh_channel()
    write_export(tmp_path / "b.json", channel_id, [make_raw(i, content="later") for i in ids])
    write_export(tmp_path / "c.json", other, [make_raw(i) for i in ids])
    dry = run_import(tmp_path / "b.json", tmp_path / "c.json", dry_run=True)
    assert (dry.written, dry.already_there) == (70, 10)
    assert live_ids(channel_id, ids) == ids[:10]
    assert not ledger.read_ledger(other)
    assert not Channel.objects.filter(id=other).exists()
    wet = run_import(tmp_path / "b.json", tmp_path / "c.json")
    assert (wet.written, wet.already_there) == (dry.written, dry.already_there)


def test_a_dry_run_counts_duplicates_in_two_files_once(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 9_000, apart_seconds=200)
    write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids[:5_000]])
    write_export(tmp_path / "a [part 2].json", channel_id, [make_raw(i) for i in ids[2_000:]])
    for dry_run in (True, False):
        summary = run_import(tmp_path, dry_run=dry_run)
        assert (summary.written, summary.already_there) == (9_000, 3_000)


def test_guild_channel_and_users_are_stored(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    author, mentioned = fresh_channel(), fresh_channel()
    raws = [make_raw(ids[0], author=author, mentions=[make_user(mentioned, name="wan\0da", nickname="Wanda")])]
    run_import(write_export(tmp_path / "a.json", channel_id, raws, name="quay", topic="Ropes"))
    channel = Channel.objects.get(id=channel_id)
    assert (channel.name, channel.topic, channel.category, channel.kind) == ("quay", "Ropes", "Lobby", "text")
    assert channel.guild == Guild.objects.get(id=880011)
    assert ChatUser.objects.get(id=author).display_name == f"User {author}"
    assert ChatUser.objects.get(id=mentioned).name == "wanda"
    renamed = [make_raw(ids[1], author=author) | {"author": make_user(author, nickname="Anew", isBot=True)}]
    run_import(write_export(tmp_path / "a.json", channel_id, renamed, name="wharf"))
    assert Channel.objects.get(id=channel_id).name == "wharf"
    user = ChatUser.objects.get(id=author)
    assert (user.display_name, user.is_bot) == ("Anew", True)
    assert list(author_buckets(author)) == [(bucket_of(ids[0]), channel_id)]


def test_threads_direct_messages_and_webhooks_are_imported(tmp_path: Path) -> None:
    thread, direct = fresh_channel(), fresh_channel()
    ids = ids_from(MAY, 2)
    hook = make_user(55_001, name="Build status", isBot=True)
    raws = [make_raw(ids[0]), make_raw(ids[1]) | {"author": hook}]
    write_export(tmp_path / "t.json", thread, raws, type="GuildPublicThread", category="pier", name="ropes")
    export = make_export(direct, raws, type="DirectTextChat", name="wanda", category=None)
    export["guild"] = {"id": "0", "name": "Direct Messages"}
    (tmp_path / "d.json").write_text(json.dumps(export))
    assert run_import(tmp_path).written == 4
    assert Channel.objects.get(id=thread).kind == "thread"
    stored = Channel.objects.get(id=direct)
    assert (stored.kind, stored.guild) == ("direct", None)
    message = read(thread, ids[1])
    assert (message.webhook_id, message.author_name) == (55_001, "Build status")


def test_messages_from_before_2015_are_found_again(tmp_path: Path) -> None:
    channel_id = fresh_channel()
    ids = ids_from(dt.datetime(2014, 12, 20, tzinfo=dt.UTC), 40, apart_seconds=86_400)
    assert ids[0] < 0 < ids[-1]
    summary = run_import(write_export(tmp_path / "old.json", channel_id, [make_raw(i) for i in ids]))
    assert summary.written == 40
    assert [m.message_id for m in read_page(channel_id, limit=50).messages] == ids[::-1]


def test_hostile_content_is_stored_unchanged(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, len(HOSTILE))
    raws = [make_raw(i, content=text) for i, text in zip(ids, HOSTILE, strict=True)]
    raws[0]["author"] = make_user(VICTOR, name="<b>\0\u202e", nickname="'; DROP TABLE")
    summary = run_import(write_export(tmp_path / "odd.json", channel_id, raws, name="<i>\0pier</i>"))
    assert summary.written == len(HOSTILE)
    assert tuple(read(channel_id, i).content for i in ids) == HOSTILE
    assert Channel.objects.get(id=channel_id).name == "<i>pier</i>"


def test_pins_are_imported(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    raws = [make_raw(i, isPinned=i == ids[1]) for i in ids]
    run_import(write_export(tmp_path / "a.json", channel_id, raws))
    assert read(channel_id, ids[1]).pinned
    assert pinned_ids(channel_id) == [ids[1]]


def test_live_bounds_are_cleared_and_never_assumed(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 20)
    bucket = bucket_of(ids[0])
    run_import(write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids[:5]]))
    ledger.set_live(channel_id, bucket, Live(ids[0], ids[4], 5), read_began_us=postgres_now_us() + 10_000_000)
    run_import(write_export(tmp_path / "b.json", channel_id, [make_raw(i) for i in ids]))
    assert ledger.read_live(channel_id, bucket) == UNKNOWN
    assert read_figures(channel_id)[bucket]["live_rows"].value == 20
    assert [m.message_id for m in read_page(channel_id).messages] == ids[::-1]


def test_buckets_that_nothing_was_written_to_keep_their_bounds(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 5)
    path = write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids])
    run_import(path)
    bucket, live = bucket_of(ids[0]), Live(ids[0], ids[4], 5)
    ledger.set_live(channel_id, bucket, live, read_began_us=postgres_now_us() + 10_000_000)
    run_import(path)
    assert ledger.read_live(channel_id, bucket) == live


@pytest.mark.parametrize("count", [1, 99, 100, 101, 4_001])
def test_loads_and_batches_of_every_size_are_imported_completely(tmp_path: Path, count: int) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, count, apart_seconds=700)
    path = write_export(tmp_path / "a.json", channel_id, [make_raw(i) for i in ids])
    assert run_import(path).written == count
    assert live_ids(channel_id, ids) == ids
    assert run_import(path).already_there == count
