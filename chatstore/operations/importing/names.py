"""Guilds, channels and chat users named by an import, stored in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chatstore.domain.discord_export import ExportedUser, ExportHeader, find_users
from chatstore.models import Channel, ChatUser, Guild

MAX_REMEMBERED_USERS = 50_000


def upsert_channels(headers: Iterable[ExportHeader]) -> None:
    """Create or rename guilds and channels, before the first message is written."""
    found = {header.channel_id: header for header in headers}
    guilds = {header.guild_id: header.guild_name for header in found.values() if header.guild_id is not None}
    Guild.objects.bulk_create(
        # Sorted, as below, so that concurrent imports lock their rows in the same order.
        [Guild(id=guild_id, name=name) for guild_id, name in sorted(guilds.items())],
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=["name"],
    )
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
    """Users of a file, each collected once and written with the next load."""

    def __init__(self) -> None:
        self._seen: set[object] = set()
        self._waiting: dict[int, ExportedUser] = {}

    def forget(self) -> None:
        """Start a new file, which may show other names."""
        self._seen.clear()

    def add(self, raw: Mapping[str, Any]) -> None:
        """Collect the author and the mentioned users of an accepted message."""
        if not raw.get("mentions") and raw["author"].get("id") in self._seen:
            return
        if len(self._seen) > MAX_REMEMBERED_USERS:
            self._seen.clear()
        for user in find_users(raw):
            self._waiting[user.user_id] = user
        self._seen.add(raw["author"].get("id"))

    def write(self) -> None:
        """Write the collected users; existing names in Postgres are replaced."""
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
