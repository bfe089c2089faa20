"""Channels listed next to the open one."""

from __future__ import annotations

from django.db.models import QuerySet

from chatstore.models import Channel
from moderation.operations.access.visibility import Actor, visible_channels

MAX_NEIGHBOURS = 80


def neighbouring_channels(user: Actor, channel: Channel) -> QuerySet[Channel]:
    """Return the channels of the same guild (or the other direct conversations), by category and name."""
    same = visible_channels(user).filter(guild=channel.guild)
    return same.order_by("category", "name", "pk")[:MAX_NEIGHBOURS]
