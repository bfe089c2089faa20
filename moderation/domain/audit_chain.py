"""Hash chain of the audit log: the canonical form of an entry, and its hash together with the entry before it.

Version 1: the hash is sha256 of a JSON object in ASCII with sorted keys and without spaces. Its keys are `v` (the
version), `position`, `previous` (the hash before, in hex; 64 zeros for the first entry) and those of `as_canonical`:
ids as decimal strings, the time in UTC with microseconds, packed ids as the sha256 of their bytes, in hex. Every link
stores the version that it was made with, so that a later version leaves existing links valid.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VERSION = 1
"""Version of new links."""

_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"

FIRST = bytes(32)
"""Hash before the first entry."""


@dataclass(frozen=True, slots=True)
class EntryContent:
    """Every column of an entry of the audit log. ids_hash: sha256 of the packed ids."""

    id: int
    at: dt.datetime
    actor_id: int | None
    action: str
    purge_id: int | None
    channel_id: int | None
    guild_id: int | None
    chat_user_id: int | None
    details: Any
    ids_hash: bytes | None
    request_id: str


def as_canonical(entry: EntryContent) -> dict[str, Any]:
    """Return an entry as JSON values."""
    return {
        "id": str(entry.id),
        "at": entry.at.astimezone(dt.UTC).strftime(_TIME),
        "actor": _as_text(entry.actor_id),
        "action": entry.action,
        "purge": _as_text(entry.purge_id),
        "channel": _as_text(entry.channel_id),
        "guild": _as_text(entry.guild_id),
        "chat_user": _as_text(entry.chat_user_id),
        "details": entry.details,
        "ids": None if entry.ids_hash is None else entry.ids_hash.hex(),
        "request": entry.request_id,
    }


def from_canonical(value: Mapping[str, Any]) -> EntryContent:
    """Return the entry that `as_canonical` described. Raises `ValueError` for anything else."""
    try:
        return EntryContent(
            id=int(value["id"]),
            at=dt.datetime.strptime(value["at"], _TIME).replace(tzinfo=dt.UTC),
            actor_id=_as_number(value["actor"]),
            action=value["action"],
            purge_id=_as_number(value["purge"]),
            channel_id=_as_number(value["channel"]),
            guild_id=_as_number(value["guild"]),
            chat_user_id=_as_number(value["chat_user"]),
            details=value["details"],
            ids_hash=None if value["ids"] is None else bytes.fromhex(value["ids"]),
            request_id=value["request"],
        )
    except (KeyError, TypeError) as error:
        raise ValueError("not an entry of the audit log") from error


def link_hash(entry: EntryContent, *, position: int, previous: bytes, version: int = VERSION) -> bytes:
    """Return the hash of an entry at its position in the chain. Raises `ValueError` for an unknown version."""
    if version != VERSION:
        raise ValueError(f"unknown version of the audit chain: {version}")
    linked: Mapping[str, Any] = {"v": version, "position": position, "previous": previous.hex(), **as_canonical(entry)}
    text = json.dumps(linked, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).digest()


def _as_text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _as_number(text: str | None) -> int | None:
    return None if text is None else int(text)
