"""Names of the channels and roles that messages mention, as far as their viewer may know them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from chatstore.domain.mentions import find_mentioned_channels, find_mentioned_roles
from chatstore.domain.messages import Message
from chatstore.models import Channel
from chatstore.operations.members import names_of_roles
from moderation.operations.access.visibility import Actor, visible_channels


@dataclass(frozen=True, slots=True)
class Mentioned:
    """Channels that the viewer may open, and the names of roles by guild; both by ID, as far as they are known."""

    channels: Mapping[int, Channel] = field(default_factory=dict)
    roles: Mapping[int, Mapping[int, str]] = field(default_factory=dict)

    def roles_in(self, guild_id: int | None) -> Mapping[int, str]:
        """Return the names of the roles that a message of a guild may mention."""
        return self.roles.get(guild_id, {}) if guild_id is not None else {}


def name_mentioned(user: Actor, messages: Iterable[Message], *, channels: Iterable[Channel]) -> Mentioned:
    """Return what the messages of a page mention. channels: those of the messages.

    One query for the channels and one for the roles, none if there are none.
    """
    shown = list(messages)
    channel_ids, role_ids = find_mentioned_channels(shown), find_mentioned_roles(shown)
    return Mentioned(
        visible_channels(user).in_bulk(channel_ids) if channel_ids else {},
        names_of_roles({channel.guild_id for channel in channels if channel.guild_id is not None}, role_ids),
    )
