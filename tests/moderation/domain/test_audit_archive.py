"""Archive files of the audit log: whatever is changed in one is noticed."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from typing import Any

import pytest

from moderation.domain.audit_archive import (
    ArchivedLink,
    ArchivedRange,
    WrongArchive,
    name_of_key,
    read_archive,
    write_archive,
)
from moderation.domain.audit_chain import FIRST, EntryContent, as_canonical, from_canonical, link_hash

KEY = b"a key of at least 32 characters ."
PACKED = b"\x02\x00\x00\x00packed"


def entry(n: int) -> EntryContent:
    packed = n % 3 == 2
    return EntryContent(
        id=9_000_000_000_000_000_000 + n,
        at=dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC) + dt.timedelta(microseconds=n),
        actor_id=None if n % 2 else 7,
        action="hold_placed",
        purge_id=None,
        channel_id=2**60 + n,
        guild_id=None,
        chat_user_id=71,
        details={"reason": "Größe \u2028 =1+1", "n": n, "share": 0.1},
        ids_hash=hashlib.sha256(PACKED).digest() if packed else None,
        request_id="",
    )


def links(*, first: int = 1, count: int = 5, previous: bytes = FIRST) -> list[ArchivedLink]:
    made = []
    for n in range(first, first + count):
        content = entry(n)
        previous = link_hash(content, position=n, previous=previous)
        packed = PACKED if content.ids_hash else None
        made.append(ArchivedLink(n, 1, previous, dt.datetime(2026, 3, 2, tzinfo=dt.UTC), content, packed))
    return made


@pytest.fixture
def lines() -> list[bytes]:
    return list(write_archive(links(), previous=FIRST, key=KEY))


def changed(lines: list[bytes], at: int, **values: Any) -> list[bytes]:
    found = json.loads(lines[at]) | values
    text = json.dumps(found, sort_keys=True, separators=(",", ":"))
    return [*lines[:at], f"{text}\n".encode(), *lines[at:][1:]]


def test_what_was_written_is_read_back(lines: list[bytes]) -> None:
    seen: list[int] = []
    found = read_archive(lines, keys=[KEY], on_link=lambda position, _: seen.append(position))
    assert found == ArchivedRange(1, 5, FIRST, links()[-1].hash, name_of_key(KEY))
    assert seen == [1, 2, 3, 4, 5]


def test_the_same_links_make_the_same_bytes(lines: list[bytes]) -> None:
    assert list(write_archive(links(), previous=FIRST, key=KEY)) == lines


def test_an_entry_is_the_same_after_it_was_read() -> None:
    for n in range(6):
        assert from_canonical(json.loads(json.dumps(as_canonical(entry(n))))) == entry(n)


def test_a_later_file_continues_an_earlier_one() -> None:
    first, second = links(), links(first=6, previous=links()[-1].hash)
    found = read_archive(write_archive(second, previous=first[-1].hash, key=KEY), keys=[KEY])
    assert (found.first, found.previous) == (6, first[-1].hash)


def test_a_missing_line_is_noticed(lines: list[bytes]) -> None:
    for at in range(len(lines)):
        with pytest.raises(WrongArchive):
            read_archive([*lines[:at], *lines[at + 1 :]], keys=[KEY])


def test_a_file_that_was_cut_off_is_noticed(lines: list[bytes]) -> None:
    for end in range(len(lines)):
        with pytest.raises(WrongArchive):
            read_archive(lines[:end], keys=[KEY])
    with pytest.raises(WrongArchive, match="follows its signature"):
        read_archive([*lines, lines[1]], keys=[KEY])


def test_a_changed_value_is_noticed(lines: list[bytes]) -> None:
    described = json.loads(lines[3])
    other = {**described["entry"], "action": "hold_lifted"}
    for at, values in (
        (0, {"first": 2}),
        (0, {"previous": "11" * 32}),
        (2, {"packed": "AAAA"}),
        (3, {"entry": other}),
        (3, {"hash": "00" * 32}),
        (3, {"linked_at": "2020-01-01T00:00:00+00:00"}),
        (3, {"version": 2}),
        (6, {"entries": 4}),
        (6, {"last": 6}),
        (6, {"signature": "00" * 32}),
    ):
        with pytest.raises(WrongArchive):
            read_archive(changed(lines, at, **values), keys=[KEY])


def test_a_file_that_was_computed_again_needs_the_key(lines: list[bytes]) -> None:
    forged = write_archive(links(), previous=FIRST, key=b"another key of at least 32 chars.")
    with pytest.raises(WrongArchive, match="another key"):
        read_archive(forged, keys=[KEY])
    assert name_of_key(KEY).encode() in lines[-1]


def test_a_file_is_verified_with_the_key_that_signed_it_among_several(lines: list[bytes]) -> None:
    newer = b"a newer key of over 32 characters"
    assert read_archive(lines, keys=[newer, KEY]).key == name_of_key(KEY)
    later = list(write_archive(links(), previous=FIRST, key=newer))
    assert read_archive(later, keys=[newer, KEY]).key == name_of_key(newer)
    with pytest.raises(WrongArchive, match=f"another key, {name_of_key(KEY)}; known are {name_of_key(newer)}"):
        read_archive(lines, keys=[newer])
    # That a key is known does not make it the right one.
    relabelled = changed(lines, 6, key=name_of_key(newer))
    with pytest.raises(WrongArchive, match="its signature is wrong"):
        read_archive(relabelled, keys=[newer, KEY])


@pytest.mark.parametrize("content", [b"", b"{}\n", b"[]\n", b"null\n", b"\xff\xfe", b'{"format": 1}\n', b"[" * 9_000])
def test_any_other_file_is_refused(content: bytes) -> None:
    with pytest.raises(WrongArchive):
        read_archive(content.splitlines(keepends=True), keys=[KEY])


def test_an_archive_without_entries_is_not_written() -> None:
    with pytest.raises(ValueError, match="at least one"):
        list(write_archive([], previous=FIRST, key=KEY))
