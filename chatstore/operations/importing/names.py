"""Guilds, channels, chat users and members of guilds named by an import, stored in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chatstore.domain.discord_export import JOIN_TYPE, ExportedUser, ExportHeader, find_users, parse_roles
from chatstore.domain.members import Member
from chatstore.domain.messages import Message
from chatstore.models import Channel, ChatUser, Guild
from chatstore.operations.members import upsert_members

MAX_REMEMBERED_USERS = 50_000


def upsert_channels(headers: Iterable[ExportHeader]) -> None:
    """Create or rename guilds and channels, before the first message is written."""
    found = {header.channel_id: header for header in headers}
    # Sorted, as below, so that concurrent imports lock their rows in the same order.
    guilds = {
        header.guild_id: Guild(id=header.guild_id, name=header.guild_name, icon_url=header.guild_icon_url)
        for header in sorted(found.values(), key=lambda header: header.guild_id or 0)
        if header.guild_id is not None
    }
    for fields, some in (
        (["name"], [guild for guild in guilds.values() if not guild.icon_url]),
        (["name", "icon_url"], [guild for guild in guilds.values() if guild.icon_url]),
    ):
        Guild.objects.bulk_create(some, update_conflicts=True, unique_fields=["id"], update_fields=fields)
    Channel.objects.bulk_create(
        [
            Channel(
                id=channel_id,
                guild_id=header.guild_id,
                kind=header.kind,
                name=header.channel_name,
                category=header.category,
                topic=header.topic,
            )
            for channel_id, header in sorted(found.items())
        ],
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=["guild", "kind", "name", "category", "topic"],
    )


class NamesSeen:
    """Users of a file, each collected once and written with the next load, as members of the file's guild too.

    A message that announces that its author joined gives the time; of several, the newest counts.
    """

    def __init__(self) -> None:
        self._seen: set[object] = set()
        self._waiting: dict[int, ExportedUser] = {}
        self._guild_id: int | None = None
        self._members: dict[tuple[int, int], Member] = {}

    def open_file(self, guild_id: int | None) -> None:
        """Start a new file, which may show other names. guild_id: None for direct messages."""
        self._seen.clear()
        self._guild_id = guild_id

    def add(self, raw: Mapping[str, Any], message: Message) -> None:
        """Collect the author and the mentioned users of an accepted message."""
        if message.type == JOIN_TYPE:
            self._add_member(Member(message.author_id, joined_at=message.posted_at))
        if not raw.get("mentions") and raw["author"].get("id") in self._seen:
            return
        if len(self._seen) > MAX_REMEMBERED_USERS:
            self._seen.clear()
        for user in find_users(raw):
            self._waiting[user.user_id] = user
        if roles := parse_roles(raw["author"]):
            self._add_member(Member(message.author_id, roles=roles))
        self._seen.add(raw["author"].get("id"))

    def _add_member(self, member: Member) -> None:
        if self._guild_id is not None:
            key = self._guild_id, member.user_id
            self._members[key] = member.with_earlier(self._members.get(key))

    def write(self) -> None:
        """Write the collected users and members; existing names in Postgres are replaced."""
        users = [
            ChatUser(id=user.user_id, name=user.name, display_name=user.display_name, is_bot=user.is_bot)
            # Sorted, so that concurrent imports lock their rows in the same order.
            for user in sorted(self._waiting.values(), key=lambda user: user.user_id)
        ]
        ChatUser.objects.bulk_create(
            users,
            batch_size=1_000,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=["name", "display_name", "is_bot"],
        )
        self._waiting.clear()
        if self._members:
            upsert_members(self._members)
            self._members.clear()
