"""The audit log as CSV and as JSON, written while it is read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from moderation.operations.lookup.audit_log import ListedEntry
from moderation.views.channel_exports import ROWS_PER_CHUNK, defuse


def _id(value: int | None) -> str | None:
    """Return an ID as text: it has more digits than a number in JavaScript."""
    return None if value is None else str(value)


COLUMNS: Mapping[str, Callable[[ListedEntry], Any]] = {
    "id": lambda listed: _id(listed.entry.pk),
    "at": lambda listed: listed.entry.at.isoformat(timespec="microseconds"),
    "person": lambda listed: None if listed.entry.actor is None else listed.entry.actor.get_username(),
    "action": lambda listed: listed.entry.action,
    "purge_id": lambda listed: _id(listed.entry.purge_id),
    "channel_id": lambda listed: _id(listed.entry.channel_id),
    "channel": lambda listed: None if listed.channel is None else listed.channel.name,
    "guild_id": lambda listed: _id(listed.entry.guild_id),
    "guild": lambda listed: None if listed.guild is None else listed.guild.name,
    "user_id": lambda listed: _id(listed.entry.chat_user_id),
    "user": lambda listed: None if listed.chat_user is None else listed.chat_user.name,
    "request_id": lambda listed: listed.entry.request_id,
    "position": lambda listed: None if listed.link is None else listed.link.position,
    "hash": lambda listed: None if listed.link is None else bytes(listed.link.hash).hex(),
    "details": lambda listed: listed.entry.details,
}
"""Columns by name. Names are an interface: scripts read them."""


def as_csv(entries: Iterable[ListedEntry]) -> Iterator[str]:
    """Yield the lines of a CSV file with a header; details are JSON."""
    yield _lines([COLUMNS])
    rows = ([_cell(read(listed)) for read in COLUMNS.values()] for listed in entries)
    while some := list(islice(rows, ROWS_PER_CHUNK)):
        yield _lines(some)


def as_json(entries: Iterable[ListedEntry]) -> Iterator[str]:
    """Yield a JSON array of objects."""
    rows = (json.dumps({name: read(listed) for name, read in COLUMNS.items()}) for listed in entries)
    yield "["
    separator = "\n"
    while some := list(islice(rows, ROWS_PER_CHUNK)):
        yield separator + ",\n".join(some)
        separator = ",\n"
    yield "\n]\n"


def _cell(value: Any) -> str | int | None:
    return defuse(json.dumps(value, sort_keys=True) if isinstance(value, dict) else value)


def _lines(rows: Iterable[Iterable[Any]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()
