"""Canonical form and hash of entries of the audit log."""

import datetime as dt
import hashlib
from dataclasses import replace
from typing import Any

import pytest

from moderation.domain.audit_chain import FIRST, EntryContent, link_hash

ENTRY = EntryContent(
    id=2217813737473025833,
    at=dt.datetime(2026, 11, 24, 23, 30, 0, 5, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    actor_id=7,
    action="hold_placed",
    purge_id=None,
    channel_id=12,
    guild_id=5001,
    chat_user_id=None,
    details={"reason": "appeal – “open”", "hold": "3"},
    ids_hash=hashlib.sha256(b"ids").digest(),
    request_id="",
)

CANONICAL = (
    '{"action":"hold_placed","actor":"7","at":"2026-11-24T22:30:00.000005Z","channel":"12","chat_user":null,'
    '"details":{"hold":"3","reason":"appeal \\u2013 \\u201copen\\u201d"},"guild":"5001","id":"2217813737473025833",'
    '"ids":"' + hashlib.sha256(b"ids").hexdigest() + '","position":1,"previous":"' + "0" * 64 + '",'
    '"purge":null,"request":"","v":1}'
)  # fmt: skip


def test_the_canonical_form_of_version_1_never_changes() -> None:
    assert link_hash(ENTRY, position=1, previous=FIRST) == hashlib.sha256(CANONICAL.encode()).digest()


@pytest.mark.parametrize(
    "change",
    [
        {"id": 1},
        {"at": ENTRY.at + dt.timedelta(microseconds=1)},
        {"actor_id": None},
        {"action": "hold_lifted"},
        {"purge_id": 1},
        {"channel_id": None},
        {"guild_id": 1},
        {"chat_user_id": 1},
        {"details": {"reason": "appeal", "hold": "3"}},
        {"ids_hash": None},
        {"request_id": "1"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_hash_depends_on_every_column(change: dict[str, Any]) -> None:
    changed = replace(ENTRY, **change)
    assert link_hash(changed, position=1, previous=FIRST) != link_hash(ENTRY, position=1, previous=FIRST)


def test_the_hash_depends_on_the_position_and_the_entry_before() -> None:
    hashes = {
        link_hash(ENTRY, position=position, previous=previous)
        for position in (1, 2)
        for previous in (FIRST, b"\1" * 32)
    }
    assert len(hashes) == 4


def test_the_order_of_keys_and_the_time_zone_do_not_matter() -> None:
    same = replace(ENTRY, at=ENTRY.at.astimezone(dt.UTC), details=dict(reversed(ENTRY.details.items())))
    assert link_hash(same, position=1, previous=FIRST) == link_hash(ENTRY, position=1, previous=FIRST)


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown version"):
        link_hash(ENTRY, position=1, previous=FIRST, version=2)
