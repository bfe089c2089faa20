"""Exports in the format of DiscordChatExporter, created by the tests."""

from __future__ import annotations

import datetime as dt
import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import make_snowflake, time_of, unix_ms
from chatstore.operations.coordination.channel_lock import lock_channel, lock_owner, release_channel
from chatstore.operations.importing.discord import ImportChoices, ImportSummary, import_discord
from chatstore.operations.importing.loads import Decision, DeletedIdsFactory, DeletedIdsIn, Load, decide_load
from chatstore.store.messages import read_ids, read_message

MAY = dt.datetime(2024, 5, 3, 12, tzinfo=dt.UTC)
VICTOR, WANDA = 7_101, 7_102


def fresh_channel() -> int:
    """Return a channel id that no other test uses."""
    return make_snowflake(unix_ms(MAY)) + secrets.randbits(50)


def ids_from(start_time: dt.datetime, count: int, *, apart_seconds: float = 60) -> list[int]:
    """Return ids of messages posted at even intervals from a time on."""
    start = unix_ms(start_time)
    return [make_snowflake(start + round(index * apart_seconds * 1000), sequence=7) for index in range(count)]


def make_user(user_id: int, **keys: Any) -> dict[str, Any]:
    """Return an author or a mentioned user."""
    user: dict[str, Any] = {
        "id": str(user_id),
        "name": f"user{user_id}",
        "discriminator": "0000",
        "nickname": f"User {user_id}",
        "color": None,
        "isBot": False,
        "roles": [],
        "avatarUrl": "https://cdn.example/avatar.png",
    }
    return {**user, **keys}


def make_raw(message_id: int, *, author: int = VICTOR, **keys: Any) -> dict[str, Any]:
    """Return a message with every key that the exporter always writes."""
    raw: dict[str, Any] = {
        "id": str(message_id),
        "type": "Default",
        "timestamp": time_of(message_id).isoformat(timespec="milliseconds"),
        "timestampEdited": None,
        "callEndedTimestamp": None,
        "isPinned": False,
        "content": f"message {message_id}",
        "author": make_user(author),
        "attachments": [],
        "embeds": [],
        "stickers": [],
        "reactions": [],
        "mentions": [],
        "inlineEmojis": [],
    }
    return {**raw, **keys}


def make_export(channel_id: int, messages: Sequence[Any], **channel: Any) -> dict[str, Any]:
    """Return a complete export of one channel."""
    return {
        "guild": {"id": "880011", "name": "Harbour", "iconUrl": "https://cdn.example/icon.png"},
        "channel": {
            "id": str(channel_id),
            "type": "GuildTextChat",
            "categoryId": None,
            "category": "Lobby",
            "name": "pier",
            "topic": None,
            **channel,
        },
        "dateRange": {"after": None, "before": None},
        "exportedAt": "2024-06-01T00:00:00+00:00",
        "messages": list(messages),
        "messageCount": len(messages),
    }


def write_export(path: Path, channel_id: int, messages: Sequence[Any], **channel: Any) -> Path:
    """Write the export as an indented file, like the exporter does."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(make_export(channel_id, messages, **channel), indent=2), encoding="utf-8")
    return path


def no_purges(channel_ids: Collection[int]) -> DeletedIdsIn:
    """Report no purged ids, as if nothing had ever been purged."""
    return lambda channel_id, bucket: ()


OTHER_JOB = "purge:18"


def take_over(channel_id: int) -> None:
    """Give an import's channel to another job."""
    release_channel(channel_id, job=str(lock_owner(channel_id)))
    lock_channel(channel_id, job=OTHER_JOB)


@contextmanager
def taken_over(channel_id: int) -> Iterator[DeletedIdsFactory]:
    """Yield a lookup of purged ids that takes the lock away from the import; unlock the channel at the end."""

    def lose(channel: int, bucket: int) -> Collection[int]:
        if channel == channel_id:
            take_over(channel)
        return ()

    try:
        yield lambda channel_ids: lose
    finally:
        release_channel(channel_id, job=OTHER_JOB)


def run_import(*paths: Path, **choices: Any) -> ImportSummary:
    """Import with the given choices; by default without purges."""
    return import_discord(list(paths), choices=ImportChoices(**{"deleted_ids": no_purges, **choices}))


def decide(*messages: Message, restore: bool = False) -> Decision:
    """Return the decision of an import that has just read the store."""
    load = Load()
    for message in messages:
        load.add(message)
    return decide_load(
        load, live_stamps={}, read_unlisted=True, deleted_ids=lambda channel_id, bucket: (), restore=restore
    )


def live_ids(channel_id: int, ids: Iterable[int]) -> list[int]:
    """Return all live ids in the buckets of the given ones, ascending."""
    buckets = {bucket_of(message_id) for message_id in ids}
    return sorted(row[0] for b in buckets for rows in read_ids(channel_id, b) for row in rows)


def read(channel_id: int, message_id: int) -> Message:
    """Return a message that must exist."""
    message = read_message(channel_id, message_id)
    assert message is not None
    return message
