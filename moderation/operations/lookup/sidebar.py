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
from moderation.operations.lookup.pinned import pinned_channels
from moderation.operations.raids.detection import raided_channels
from moderation.store.visited_channels import visit_channel

MAX_NEIGHBOURS = 80
MAX_GUILDS = 200

ACTIVE_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Sidebar:
    """Guilds, and the channels of the open one's guild, by category and name.

    pinned, recent: channels of any guild that the user pinned, or opened lately without pinning them. raided: ids of
    channels with a possible raid. active: ids of channels with a message within the last hour; active_guilds: their
    guilds, None for direct messages.
    """

    guilds: Sequence[Guild]
    neighbours: Sequence[Channel]
    pinned: Sequence[Channel]
    recent: Sequence[Channel]
    raided: Collection[int]
    active: Collection[int]
    active_guilds: Collection[int | None]


def sidebar_of(user: Actor, channel: Channel) -> Sidebar:
    """Record that the user opened a channel; return what is listed next to it.

    Without Redis no channel is marked as active, and none is recent.
    """
    same = visible_channels(user).filter(guild=channel.guild)
    active = _active_channels()
    guilds = visible_channels(user).filter(pk__in=active).order_by().values_list("guild_id", flat=True).distinct()
    pinned = pinned_channels(user)
    return Sidebar(
        pinned=pinned,
        recent=_visit(user, channel, pinned),
        raided=raided_channels(),
        guilds=_guilds_with(visible_guilds(user), channel.guild),
        neighbours=list(same.order_by("category", "name", "pk")[:MAX_NEIGHBOURS]),
        active=active,
        active_guilds=set(guilds) if active else (),
    )


def _visit(user: Actor, channel: Channel, pinned: Sequence[Channel]) -> list[Channel]:
    """Record that the user opened a channel; return the others that they opened lately, without the pinned ones."""
    if user.pk is None:
        return []
    try:
        visited = visit_channel(user.pk, channel.pk)
    except StoreUnavailable:
        return []
    others = [channel_id for channel_id in visited if channel_id != channel.pk]
    known = visible_channels(user).select_related("guild").in_bulk(others)
    return [known[pk] for pk in others if pk in known and known[pk] not in pinned]


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
