"""A community with the messages of a real export: its times, authors and lengths, with other texts."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chatstore.domain.buckets import bucket_of
from chatstore.domain.snowflakes import make_snowflake
from chatstore.operations.importing.discord import ImportChoices, import_discord
from chatstore.store.messages import read_ids
from moderation.operations.undo.import_guard import DeletedIds
from tests.imports.exports import make_export, make_raw, make_user

SHAPE = Path(__file__).with_name("export.txt")

ADVERTISED = "giveaway"
ADVERTISED_EVERY = 97
"""One in so many messages contains that word."""

_WORDS = "and then the page loads but nothing shows up in the console so I tried it again with another browser"


@dataclass(frozen=True, slots=True)
class Posted:
    """A message of the community, with what the conditions of a purge can refer to."""

    channel_id: int
    message_id: int
    author: int
    content: str
    has: str = ""

    @property
    def is_advertisement(self) -> bool:
        return ADVERTISED in self.content

    def as_raw(self) -> dict[str, Any]:
        """Return the message as DiscordChatExporter writes it."""
        files = [{"id": "1", "url": "https://cdn.example/a.png", "fileName": "a.png", "fileSizeBytes": 7}]
        raw = make_raw(
            self.message_id,
            content=self.content,
            attachments=files if "a" in self.has else [],
            embeds=[{"title": "A page", "url": "https://docs.example/", "description": ""}] if "e" in self.has else [],
        )
        return raw | {"author": make_user(self.author, isBot="b" in self.has)}


@dataclass(frozen=True, slots=True)
class Community:
    """A guild under an id that no other test uses; so are its channels, by name, and its authors."""

    guild_id: int
    first_author: int
    channels: dict[str, int]
    messages: frozenset[Posted]

    def author(self, number: int) -> int:
        """Return the id of an author; number 1 wrote most."""
        return self.first_author + number

    def read_live(self) -> set[tuple[int, int]]:
        """Return the live (channel id, message id) of every bucket that ever had messages."""
        buckets = {(message.channel_id, bucket_of(message.message_id)) for message in self.messages}
        return {(channel, row[0]) for channel, bucket in buckets for page in read_ids(channel, bucket) for row in page}


def make_community() -> Community:
    """Return a community that is not stored yet."""
    first_author = secrets.randbits(50) << 10
    channels: dict[str, int] = {}
    messages = set(_read_shape(channels, first_author))
    return Community(secrets.randbits(60), first_author, channels, frozenset(messages))


def import_community(community: Community, folder: Path) -> None:
    """Write the community as an export, a file for each channel, and import it."""
    for name, channel_id in community.channels.items():
        here = [message for message in community.messages if message.channel_id == channel_id]
        raws = [message.as_raw() for message in sorted(here, key=lambda message: message.message_id)]
        export = make_export(channel_id, raws, name=name)
        export["guild"] |= {"id": str(community.guild_id), "name": "Community"}
        (folder / f"{name}.json").write_text(json.dumps(export))
    summary = import_discord([folder], choices=ImportChoices(deleted_ids=DeletedIds))
    assert summary.written == len(community.messages), summary


def ids_of(messages: Iterable[Posted]) -> set[tuple[int, int]]:
    """Return (channel id, message id) of the messages."""
    return {(message.channel_id, message.message_id) for message in messages}


def _read_shape(channels: dict[str, int], first_author: int) -> Iterator[Posted]:
    channel_id = second = 0
    for number, line in enumerate(SHAPE.read_text().splitlines()):
        first, *rest = line.split()
        if first == "channel":
            name, start = rest
            channel_id = channels[name] = secrets.randbits(60)
            second = int(start)
            continue
        second += int(first)
        has = rest[2] if len(rest) > 2 else ""
        yield Posted(
            channel_id,
            make_snowflake(second * 1_000, sequence=number % 4_096),
            first_author + int(rest[0]),
            _write_text(number, int(rest[1]), has),
            has,
        )


def _write_text(number: int, length: int, has: str) -> str:
    begin = "https://docs.example/page " if "l" in has else ""
    begin += f"{ADVERTISED} " if number % ADVERTISED_EVERY == 0 else ""
    offset = number % 50
    return (begin + f"{_WORDS} " * (1 + length // len(_WORDS)))[offset if not begin else 0 :][: max(length, len(begin))]
