"""The audit log as CSV and as JSON, written while it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from moderation.operations.lookup.audit_log import ListedEntry
from moderation.views.exports import id_as_text, write_csv, write_json

COLUMNS: Mapping[str, Callable[[ListedEntry], Any]] = {
    "id": lambda listed: id_as_text(listed.entry.pk),
    "at": lambda listed: listed.entry.at.isoformat(timespec="microseconds"),
    "person": lambda listed: None if listed.entry.actor is None else listed.entry.actor.get_username(),
    "action": lambda listed: listed.entry.action,
    "purge_id": lambda listed: id_as_text(listed.entry.purge_id),
    "channel_id": lambda listed: id_as_text(listed.entry.channel_id),
    "channel": lambda listed: None if listed.channel is None else listed.channel.name,
    "guild_id": lambda listed: id_as_text(listed.entry.guild_id),
    "guild": lambda listed: None if listed.guild is None else listed.guild.name,
    "user_id": lambda listed: id_as_text(listed.entry.chat_user_id),
    "user": lambda listed: None if listed.chat_user is None else listed.chat_user.name,
    "request_id": lambda listed: listed.entry.request_id,
    "position": lambda listed: None if listed.link is None else listed.link.position,
    "hash": lambda listed: None if listed.link is None else bytes(listed.link.hash).hex(),
    "details": lambda listed: listed.entry.details,
}


def as_csv(entries: Iterable[ListedEntry]) -> Iterator[str]:
    """Yield the lines of a CSV file with a header; details are JSON."""
    return write_csv(COLUMNS, entries)


def as_json(entries: Iterable[ListedEntry]) -> Iterator[str]:
    """Yield a JSON array of objects."""
    return write_json(COLUMNS, entries)
