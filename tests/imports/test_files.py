"""Files, folders and archives: valid ones, broken ones, and other formats."""

import json
import os
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from chatstore.domain.discord_export import ExportRejected
from chatstore.domain.json_stream import Unreadable
from chatstore.operations.importing.export_files import (
    MAX_OPEN_ARCHIVES,
    ExportFile,
    ExportMessages,
    OpenArchives,
    find_exports,
    read_header,
)
from tests.imports.exports import MAY, ids_from, make_export, make_raw, write_export

pytestmark = pytest.mark.unit

CHANNEL = 990_001
RAWS = [make_raw(message_id) for message_id in ids_from(MAY, 300)]


def file_of(path: Path) -> ExportFile:
    return ExportFile(path, None, path.stat().st_size)


def messages_of(file: ExportFile) -> ExportMessages:
    return ExportMessages(file, lambda count: None)


def read_all(path: Path) -> tuple[list[Any], str]:
    """Return the messages that a file yields and the error it ends with."""
    found: list[Any] = []
    try:
        for raw in messages_of(file_of(path)):
            found.append(raw)  # noqa: PERF402  # what came before the break is returned
    except ExportRejected as rejected:
        return found, str(rejected)
    return found, ""


def test_the_decoder_is_the_compiled_one() -> None:
    assert json.decoder.scanner.c_make_scanner is not None  # type: ignore[attr-defined]


def test_a_file_yields_its_header_and_messages(tmp_path: Path) -> None:
    path = write_export(tmp_path / "pier.json", CHANNEL, RAWS)
    assert read_header(file_of(path)).channel_id == CHANNEL
    assert read_all(path) == (RAWS, "")


def test_every_byte_read_is_reported(tmp_path: Path) -> None:
    path = write_export(tmp_path / "pier.json", CHANNEL, RAWS)
    sizes: list[int] = []
    list(ExportMessages(file_of(path), sizes.append))
    assert sum(sizes) == path.stat().st_size


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "pier.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(make_export(CHANNEL, RAWS)).encode())
    assert read_header(file_of(path)).channel_id == CHANNEL
    assert read_all(path) == (RAWS, "")


def test_a_header_behind_the_messages_is_found(tmp_path: Path) -> None:
    path = tmp_path / "pier.json"
    path.write_text(json.dumps(dict(reversed(make_export(CHANNEL, RAWS).items()))))
    assert read_header(file_of(path)).channel_id == CHANNEL


@pytest.mark.parametrize("kept", [0.3, 0.7, 0.999])
def test_a_truncated_file_yields_the_messages_before_the_end(tmp_path: Path, kept: float) -> None:
    path = write_export(tmp_path / "pier.json", CHANNEL, RAWS)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    found, reason = read_all(path)
    assert found == RAWS[: len(found)]
    assert len(found) > 300 * (kept - 0.1)
    assert f"broken after {len(found)} messages: unexpected end of file" in reason


def test_garbage_in_a_message_loses_that_message(tmp_path: Path) -> None:
    path = write_export(tmp_path / "pier.json", CHANNEL, RAWS)
    whole = path.read_bytes()
    middle = whole.index(b'"id": "%s"' % RAWS[150]["id"].encode())
    path.write_bytes(whole[:middle] + b"\x00\xff" + whole[middle:])
    found, reason = read_all(path)
    assert isinstance(found[150], Unreadable)
    assert (found[:150], found[151:], reason) == (RAWS[:150], RAWS[151:], "")


def test_garbage_between_messages_loses_the_rest(tmp_path: Path) -> None:
    path = write_export(tmp_path / "pier.json", CHANNEL, RAWS)
    whole = path.read_bytes()
    middle = whole.rindex(b"}", 0, whole.index(b'"id": "%s"' % RAWS[150]["id"].encode())) + 1
    path.write_bytes(whole[:middle] + b"} oops" + whole[middle:])
    found, reason = read_all(path)
    assert found == RAWS[:150]
    assert "broken after 150 messages" in reason


def test_errors_give_the_number_and_byte_offset_of_a_message(tmp_path: Path) -> None:
    path = write_export(tmp_path / "pier.json", CHANNEL, [make_raw(i, content="é😀" * 99) for i in ids_from(MAY, 200)])
    whole = path.read_bytes()
    messages = messages_of(file_of(path))
    places = [(messages.number, messages.byte, raw["id"]) for raw in messages]
    assert [number for number, _, _ in places] == list(range(1, 201))
    for _, byte, message_id in places:
        assert byte is not None
        assert json.loads(whole[byte : whole.index(b"\n    }", byte) + 6])["id"] == message_id


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an export"),
        (b"hello", "not an export"),
        (b"[1, 2]", "no list of messages"),
        (b'{"name": "left-pad", "version": "1.0"}', "no list of messages"),
        (b'{"messages": {"a": 1}, "channel": {"id": "5"}}', "no list of messages"),
        (b'{"channel": {"name": "pier"}, "messages": []}', "no id"),
        (b'{"channel": {"id": "seven"}, "messages": []}', "not an ID"),
        (b'{"messages": []}', "no id"),
        (b'{"guild": {"id": "1"}, "channel": {"id": "5"', "not an export"),
    ],
)
def test_a_file_that_is_not_an_export_is_reported(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(ExportRejected, match=reason):
        read_header(file_of(path))


def test_endlessly_nested_brackets_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_bytes(b'{"channel":{"id":"5"},"messages":[{"id":' + b"[" * 100_000)
    assert read_all(path) == ([], "it is broken after 0 messages: unexpected end of file")


def test_brackets_in_a_text_are_only_text(tmp_path: Path) -> None:
    raws = [make_raw(message_id, content="[{" * 30_000) for message_id in ids_from(MAY, 3)]
    assert read_all(write_export(tmp_path / "pier.json", CHANNEL, raws)) == (raws, "")


def test_folders_are_searched_and_media_left_out(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "pier.json_Files").mkdir()
    write_export(tmp_path / "pier.json", CHANNEL, [])
    write_export(tmp_path / "deep" / "er" / "quay.json", CHANNEL, [])
    (tmp_path / "pier.json_Files" / "sticker.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("not an export")
    files, failed = find_exports([tmp_path])
    assert [file.path.name for file in files] == ["quay.json", "pier.json"]
    assert not failed


def test_parts_follow_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = ["pier.json", *(f"pier [part {number}].json" for number in (2, 3, 10, 11))]
    for name in sorted(names, reverse=True):
        write_export(tmp_path / name, CHANNEL, [])
    files, _ = find_exports([tmp_path])
    assert [file.path.name for file in files] == names


def test_an_archive_yields_its_members(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export/pier.json", json.dumps(make_export(CHANNEL, RAWS)))
        archive.writestr("export/pier.json_Files/sticker.json", "{}")
        archive.writestr("export/readme.txt", "hello")
    [file], failed = find_exports([path])
    assert not failed
    assert file.name == f"{path}:export/pier.json"
    assert list(messages_of(file)) == RAWS


def test_a_damaged_member_yields_the_messages_before_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("pier.json", json.dumps(make_export(CHANNEL, RAWS)))
    whole = bytearray(path.read_bytes())
    place = whole.index(b"message ", len(whole) // 2)
    whole[place : place + 7] = b"massage"
    path.write_bytes(whole)
    [file], _ = find_exports([path])
    with pytest.raises(ExportRejected, match="Bad CRC"):
        list(messages_of(file))


def test_a_missing_file_or_broken_archive_is_reported(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd.zip").write_bytes(b"PK nothing of the kind")
    _, failed = find_exports([tmp_path / "absent.json", tmp_path / "empty", tmp_path / "odd.zip"])
    assert [each.file for each in failed] == [str(tmp_path / n) for n in ("absent.json", "empty", "odd.zip")]
    assert "does not exist" in failed[0].reason
    assert "contains no" in failed[1].reason
    assert "zip" in failed[2].reason


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = write_export(tmp_path / "pier.json", CHANNEL, [])
    files, _ = find_exports([path, tmp_path, path])
    assert len(files) == 1


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    os.mkfifo(tmp_path / "pipe")
    write_export(tmp_path / "pier.json", CHANNEL, [])
    files, failed = find_exports([tmp_path, tmp_path / "pipe", Path("/dev/null")])
    assert [file.path.name for file in files] == ["pier.json"]
    assert [Path(each.file).name for each in failed] == ["pipe.json", "pipe", "null"]
    assert {each.reason for each in failed} == {"it is not a regular file"}


def test_a_symlink_loop_is_followed_once(tmp_path: Path) -> None:
    write_export(tmp_path / "pier.json", CHANNEL, [])
    (tmp_path / "again").symlink_to(tmp_path)
    files, failed = find_exports([tmp_path])
    assert (len(files), failed) == (1, [])


def zip_up(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.json", content)
    return path


def test_a_member_with_too_high_a_compression_ratio_is_refused(tmp_path: Path) -> None:
    noise = os.urandom(200_000)
    path = zip_up(tmp_path / "bomb.zip", bomb=b" " * 20_000_000, noise=noise, small=b" " * 500_000)
    files, [failed] = find_exports([path])
    assert [file.member for file in files] == ["noise.json", "small.json"]
    assert failed.file == f"{path}:bomb.json"
    assert "more than 200 times its size" in failed.reason


def test_members_that_share_bytes_are_refused_together(tmp_path: Path, settings: Settings) -> None:
    """Each one alone is below the megabyte from which the ratio counts."""
    settings.IMPORT_ARCHIVE_RATIO = 20
    path = zip_up(tmp_path / "bomb.zip", **{f"m{number}": b"0123456789" * 30_000 for number in range(40)})
    files, [failed] = find_exports([path])
    assert not files
    assert failed.file == str(path)
    assert "more than 20 times" in failed.reason


def test_the_unpacked_size_of_all_archives_is_limited(tmp_path: Path, settings: Settings) -> None:
    settings.IMPORT_ARCHIVE_BYTES = 700
    zip_up(tmp_path / "a.zip", one=b"1" * 300, two=b"2" * 300)
    zip_up(tmp_path / "b.zip", three=b"3" * 300, four=b"4" * 100)
    files, [failed] = find_exports([tmp_path])
    assert {file.member for file in files} == {"one.json", "two.json", "four.json"}
    assert failed.file.endswith("three.json")
    assert "more than 700 bytes" in failed.reason


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED])
def test_a_member_with_damaged_bytes_is_reported(tmp_path: Path, method: int) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("pier.json", json.dumps(make_export(CHANNEL, [make_raw(i) for i in ids_from(MAY, 3_000)])))
    whole = bytearray(path.read_bytes())
    for place in range(len(whole) // 2, len(whole) // 2 + 200):
        whole[place] ^= 0x5A
    path.write_bytes(whole)
    [file], _ = find_exports([path])
    with pytest.raises(ExportRejected, match="is broken after"):
        list(messages_of(file))


def test_an_archive_is_opened_once_for_all_its_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for number in range(20):
            archive.writestr(f"{number:02d}.json", json.dumps(make_export(CHANNEL, [make_raw(number)])))
    files, _ = find_exports([tmp_path])
    opened: list[Path] = []

    class Counted(zipfile.ZipFile):
        def __init__(self, path: Path) -> None:
            opened.append(path)
            super().__init__(path)

    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    with closing(OpenArchives()) as archives:
        for number, file in enumerate(files):
            assert read_header(file, archives=archives).channel_id == CHANNEL
            assert [raw["id"] for raw in ExportMessages(file, lambda count: None, archives=archives)] == [str(number)]
    assert opened == [tmp_path / "all.zip"]


def test_few_archives_are_open_at_once(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number:02d}.zip" for number in range(MAX_OPEN_ARCHIVES + 1)]
    for path in paths:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.json", "{}")
    with closing(OpenArchives()) as archives:
        found = [archives.get(path) for path in paths]
        assert [archive.fp is None for archive in found] == [True, *[False] * MAX_OPEN_ARCHIVES]
        assert archives.get(paths[-1]) is found[-1]
