"""The channels beside the one that is open."""

from __future__ import annotations

from collections.abc import Sequence

from chatstore.models import Channel
from moderation.operations.access import Actor, visible_channels

NEIGHBOURS_AT_MOST = 80


def neighbouring_channels(user: Actor, channel: Channel) -> Sequence[Channel]:
    """The channels of the same guild (or the other direct conversations), by category and name."""
    same = visible_channels(user).filter(guild_id=channel.guild_id)
    return same.order_by("category", "name", "pk")[:NEIGHBOURS_AT_MOST]
