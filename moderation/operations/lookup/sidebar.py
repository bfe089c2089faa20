"""Guilds and channels listed next to the open one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from chatstore.domain.errors import NotFound, StoreUnavailable
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, Guild
from chatstore.store.activity import MAX_KEPT, channels_active_within, last_active_channels
from moderation.operations.access.visibility import Actor, visible_channels

MAX_NEIGHBOURS = 80
MAX_GUILDS = 200

ACTIVE_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Sidebar:
    """Guilds, and the channels of the open one's guild, by category and name.

    active: ids of channels with a message within the last hour; active_guilds: their guilds, None for direct messages.
    """

    guilds: Sequence[Guild]
    neighbours: Sequence[Channel]
    active: Collection[int]
    active_guilds: Collection[int | None]


def sidebar_of(user: Actor, channel: Channel) -> Sidebar:
    """Return what is listed next to a channel. Without Redis no channel is marked as active."""
    same = visible_channels(user).filter(guild=channel.guild)
    active = _active_channels()
    guilds = visible_channels(user).filter(pk__in=active).order_by().values_list("guild_id", flat=True).distinct()
    return Sidebar(
        guilds=_guilds_with(visible_guilds(user), channel.guild),
        neighbours=list(same.order_by("category", "name", "pk")[:MAX_NEIGHBOURS]),
        active=active,
        active_guilds=set(guilds) if active else (),
    )


def visible_guilds(user: Actor) -> list[Guild]:
    """Return the guilds with channels that the user may open, by name."""
    return list(Guild.objects.filter(Exists(visible_channels(user).filter(guild_id=OuterRef("pk"))))[:MAX_GUILDS])


def _guilds_with(guilds: list[Guild], current: Guild | None) -> list[Guild]:
    """Return guilds, the open one among them even if there are more than are listed."""
    return guilds if current is None or current in guilds else [current, *guilds]


def entrance_of(user: Actor, guild_id: int) -> Channel:
    """Return the guild's channel with the newest message, or else its first one by name. Raises `NotFound`."""
    channels = visible_channels(user).filter(guild_id=guild_id)
    try:
        ranked = last_active_channels(MAX_KEPT)
    except StoreUnavailable:
        ranked = []
    found = channels.in_bulk(ranked)
    newest = next((found[channel_id] for channel_id in ranked if channel_id in found), None)
    channel = newest or channels.order_by("name", "pk").first()
    if channel is None:
        raise NotFound(_("There is no guild %(id)s.", id=str(guild_id)))
    return channel


def _active_channels() -> set[int]:
    try:
        return channels_active_within(ACTIVE_SECONDS)
    except StoreUnavailable:
        return set()
