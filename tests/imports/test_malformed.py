"""A malformed message affects only itself; an unreadable file is reported."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from chatstore.domain.discord_export import parse_message
from chatstore.domain.errors import BadInput
from chatstore.operations.importing.discord import ImportProblem
from tests.imports.exports import (
    MAY,
    fresh_channel,
    ids_from,
    live_ids,
    make_export,
    make_raw,
    read,
    run_import,
    write_export,
)

DEEP = "[" * 3_000 + "]" * 3_000

BAD = {
    "a number of 6,000 digits": ("callEndedTimestamp", "9" * 6_000),
    "nested too deeply": ("callEndedTimestamp", DEEP),
    "half a character": ("content", '"half \\ud83d a smile"'),
    "too large": ("callEndedTimestamp", "1e999"),
    "512 KiB": ("reactions", json.dumps([{"emoji": {"name": "x" * 600_000}, "count": 1}])),
    "no valid id": ("id", "7.5"),
}
"""Problems reported for a message, by the invalid key and its JSON."""

ACCEPTED = {
    "color": '[{"title": "T", "color": "#%s"}]' % ("F" * 6_000),
    "nested": '[{"title": "T", "url": %s}]' % ("[" * 500 + "]" * 500),
}


def write_texts(path: Path, channel_id: int, texts: list[str]) -> Path:
    """Write an export whose messages are JSON texts."""
    head, tail = json.dumps(make_export(channel_id, [])).split('"messages": []')
    path.write_text(f'{head}"messages": [{", ".join(texts)}]{tail}')
    return path


def spoil(raw: dict[str, Any], key: str, text: str) -> str:
    """Return the JSON of a message with one value replaced."""
    return json.dumps({**raw, key: "@"}).replace('"@"', text, 1)


def test_invalid_messages_are_listed_with_their_position_and_the_rest_is_imported(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 2 * len(BAD) + 1)
    texts = [json.dumps(make_raw(i)) for i in ids]
    for number, (key, text) in enumerate(BAD.values()):
        texts[2 * number + 1] = spoil(make_raw(ids[2 * number + 1]), key, text)
    path = write_texts(tmp_path / "a.json", channel_id, texts)
    problems: list[ImportProblem] = []
    summary = run_import(path, on_problem=problems.append)
    assert (summary.messages, summary.written, summary.rejected) == (len(ids), len(BAD) + 1, len(BAD))
    assert live_ids(channel_id, ids) == ids[::2]
    assert summary.failed_files == []
    assert [problem.message for problem in problems] == list(range(2, len(ids), 2))
    content = path.read_bytes()
    for problem, message, text in zip(problems, BAD, texts[1::2], strict=True):
        assert message in f"{problem.kind} {problem.reason}"
        assert problem.file == str(path)
        assert problem.byte == content.index(text.encode())
    assert sum(kind.count for kind in summary.rejections.values()) == len(BAD)


def test_an_invalid_part_loses_no_message(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, len(ACCEPTED))
    texts = [spoil(make_raw(i), "embeds", text) for i, text in zip(ids, ACCEPTED.values(), strict=True)]
    summary = run_import(write_texts(tmp_path / "a.json", channel_id, texts))
    assert summary.is_whole
    assert [list(read(channel_id, i).embeds) for i in ids] == [['{"title":"T"}']] * len(ids)


def test_a_parser_error_names_its_file_and_the_others_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad, ids = fresh_channel(), fresh_channel(), ids_from(MAY, 5)
    write_export(tmp_path / "a.json", bad, [make_raw(i) for i in ids])
    write_export(tmp_path / "b.json", good, [make_raw(i) for i in ids])

    def fail_at_the_third(raw: Any, *, channel_id: int, now_ms: int) -> Any:
        if channel_id == bad and raw["id"] == str(ids[2]):
            raise ZeroDivisionError("a fault of ours")
        return parse_message(raw, channel_id=channel_id, now_ms=now_ms)

    monkeypatch.setattr("chatstore.operations.importing.channels.parse_message", fail_at_the_third)
    summary = run_import(tmp_path)
    [failed] = summary.failed_files
    assert failed.file == str(tmp_path / "a.json")
    assert "unexpected ZeroDivisionError at message 3: a fault of ours" in failed.reason
    assert live_ids(good, ids) == ids
    assert live_ids(bad, ids) == ids[:2]


def test_a_channel_without_an_id_is_given_one(tmp_path: Path) -> None:
    channel_id, other, ids = fresh_channel(), fresh_channel(), ids_from(MAY, 3)
    path = write_export(tmp_path / "pier.json", 0, [make_raw(i) for i in ids], id=None)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        export = make_export(0, [make_raw(i) for i in ids], id="")
        archive.writestr("deep/quay.json", json.dumps(export))
    assert [each.reason for each in run_import(tmp_path).failed_files] == ["its channel has no id"] * 2
    summary = run_import(tmp_path, channel_ids={str(path): channel_id, "quay.json": other})
    assert (summary.written, summary.failed_files) == (6, [])
    assert live_ids(channel_id, ids) == live_ids(other, ids) == ids


def test_a_channel_that_has_an_id_keeps_it(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    path = write_export(tmp_path / "pier.json", channel_id, [make_raw(i) for i in ids])
    [failed] = run_import(path, channel_ids={str(path): channel_id + 1}).failed_files
    assert f"has the id {channel_id}, not {channel_id + 1}" in failed.reason
    assert run_import(path, channel_ids={str(path): channel_id}).written == 3


def test_an_id_for_a_file_that_is_not_there_stops_the_import(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    write_export(tmp_path / "pier.json", channel_id, [make_raw(i) for i in ids])
    with pytest.raises(BadInput, match="none of the files"):
        run_import(tmp_path, channel_ids={"quay.json": 5})
    assert live_ids(channel_id, ids) == []


def test_an_id_derived_from_a_name_is_stable(tmp_path: Path) -> None:
    in_name, ids = fresh_channel(), ids_from(MAY, 3)
    name = f"quay {in_name}"
    write_export(tmp_path / "pier.json", 0, [make_raw(i) for i in ids], id=None, name=name)
    write_export(tmp_path / "pier [part 2].json", 0, [make_raw(ids[0])], id=None, name=name)
    write_export(tmp_path / f"Harbour - pier [{in_name}].json", 0, [make_raw(i) for i in ids], id=None)
    first = run_import(tmp_path, derives_ids=True)
    assert (first.channels, first.written, first.already_there, first.failed_files) == (2, 6, 1, [])
    assert live_ids(in_name, ids) == ids
    again = run_import(tmp_path, derives_ids=True)
    assert (again.channels, again.written, again.already_there) == (2, 0, 7)
