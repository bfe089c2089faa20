"""Guilds and channels listed beside every page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from chatstore.domain.errors import NotFound, StoreUnavailable
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, Guild
from chatstore.models.chat import ChannelQuerySet
from chatstore.store.activity import channels_active_within
from moderation.operations.access.visibility import Actor, guilds_with_channels, visible_channels
from moderation.operations.lookup.channels import newest_among, posts_of
from moderation.operations.lookup.pinned import pinned_channels
from moderation.operations.raids.detection import raided_channels
from moderation.store.visited_channels import visit_channel, visited_channels

MAX_NEIGHBOURS = 80
MAX_URGENT = 40
"""Channels that are listed although others of a large guild precede them by name."""

MAX_GUILDS = 100

MAX_RECENT = 8

ACTIVE_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Sidebar:
    """Guilds, and the channels of one of them, by category and name.

    guild: whose channels are listed; None for direct messages. channel_id: the channel that the page is about.
    has_more_guilds: not all guilds are listed. is_open: the page shows the channel itself. has_more: the guild has more
    channels than are listed, which always include the one that the page is about, those with a possible raid, and the
    most active ones. pinned, recent:
    channels of any guild that the user pinned, or opened lately without pinning them. raided: ids of channels with a
    possible raid. active: ids of channels with a message within the last hour. raided_guilds, active_guilds: their
    guilds, None for direct messages. posts: posts of the last hour by channel, of the listed ones that have any.
    """

    guilds: Sequence[Guild]
    has_more_guilds: bool
    guild: Guild | None
    channel_id: int | None
    is_open: bool
    neighbours: Sequence[Channel]
    has_more: bool
    pinned: Sequence[Channel]
    recent: Sequence[Channel]
    raided: Collection[int]
    raided_guilds: Collection[int | None]
    active: Collection[int]
    active_guilds: Collection[int | None]
    posts: Mapping[int, tuple[int, ...]]


def open_sidebar(user: Actor, channel: Channel) -> Sidebar:
    """Record that the user opened a channel; return what is listed next to it.

    Without Redis no channel is marked as active, and none is recent.
    """
    return _describe(user, channel, _visits(user, opened=channel), is_open=True)


def sidebar_of(user: Actor, channel: Channel | None, *, is_open: bool = False) -> Sidebar:
    """Return what is listed next to a page about a channel, or about none: then as next to the channel opened last.

    Without Redis no channel is marked as active, and none is recent.
    """
    return _describe(user, channel, _visits(user, opened=None), is_open=is_open)


def _describe(user: Actor, channel: Channel | None, visited: Sequence[int], *, is_open: bool) -> Sidebar:
    known = visible_channels(user).in_bulk(visited) if visited else {}
    opened = [known[channel_id] for channel_id in visited if channel_id in known]
    near = channel or (opened[0] if opened else _first_channel(user))
    active, pinned, guild = _active_channels(), pinned_channels(user), near.guild if near else None
    recent = [other for other in opened if other not in pinned and other != channel][:MAX_RECENT]
    raided = raided_channels(user)
    raided_guilds = _guilds_of(user, raided)
    same = visible_channels(user).filter(guild=guild).order_by("category", "name", "pk")
    neighbours = list(same[: MAX_NEIGHBOURS + 1]) if near else []
    has_more = len(neighbours) > MAX_NEIGHBOURS
    listed = _with_urgent(neighbours, same, near, raided, active) if near and has_more else neighbours
    guilds, has_more_guilds = _list_guilds(user, open_one=guild.pk if guild else None, raided=raided_guilds)
    return Sidebar(
        guilds=guilds,
        has_more_guilds=has_more_guilds,
        guild=guild,
        channel_id=channel.pk if channel else None,
        is_open=is_open,
        neighbours=listed,
        has_more=has_more,
        pinned=pinned,
        recent=recent,
        raided=raided,
        raided_guilds=raided_guilds,
        active=set(active),
        active_guilds=_guilds_of(user, active),
        posts=posts_of({each.pk for each in (*listed, *pinned, *recent)}),
    )


def _visits(user: Actor, *, opened: Channel | None) -> list[int]:
    """Return the channels that the user opened lately, after recording the one that they open now, if any."""
    if user.pk is None:
        return []
    try:
        return visited_channels(user.pk) if opened is None else visit_channel(user.pk, opened.pk)
    except StoreUnavailable:
        return []


def _first_channel(user: Actor) -> Channel | None:
    """Return the channel with the newest message, or else the first one by name; None if the user may open none."""
    channels = visible_channels(user)
    return _newest_of(channels) or channels.first()


def _newest_of(channels: ChannelQuerySet) -> Channel | None:
    """Return the one of some channels with the newest message; None if none of them was active lately."""
    try:
        return next(iter(newest_among(channels, limit=1)), None)
    except StoreUnavailable:
        return None


def _list_guilds(user: Actor, *, open_one: int | None, raided: Collection[int | None]) -> tuple[list[Guild], bool]:
    """Return the guilds with channels that a user may open, by name, raided ones first; and if there are more.

    At most `MAX_GUILDS`, and before them the one that is open and raided ones, if they are not among them.
    """
    visible = guilds_with_channels(user)
    found = list(visible[: MAX_GUILDS + 1])
    guilds = found[:MAX_GUILDS]
    others = {pk for pk in (open_one, *raided) if pk is not None} - {guild.pk for guild in guilds}
    if others:
        guilds = [*visible.filter(pk__in=others), *guilds]
    return sorted(guilds, key=lambda guild: guild.pk not in raided), len(found) > MAX_GUILDS


def entrance_of(user: Actor, guild_id: int) -> Channel:
    """Return the guild's channel with the newest message, or else its first one by name. Raises `NotFound`."""
    channels = visible_channels(user).filter(guild_id=guild_id)
    channel = _newest_of(channels) or channels.order_by("name", "pk").first()
    if channel is None:
        raise NotFound(_("There is no server %(id)s.", id=str(guild_id)))
    return channel


def _active_channels() -> list[int]:
    try:
        return channels_active_within(ACTIVE_SECONDS)
    except StoreUnavailable:
        return []


def _with_urgent(
    first: Sequence[Channel], same: ChannelQuerySet, near: Channel, raided: Collection[int], active: Sequence[int]
) -> list[Channel]:
    """Return as many of a guild's channels as are listed: `near`, raided and active ones, then the first ones.

    same: all channels of the guild, in the order in which they are listed. active: the newest messages first.
    """
    # Most raided channels are active, too.
    urgent = dict.fromkeys([near.pk, *raided, *active])
    here = set(same.filter(pk__in=urgent).order_by().values_list("pk", flat=True))
    ids = [channel_id for channel_id in urgent if channel_id in here][:MAX_URGENT]
    others = [channel.pk for channel in first if channel.pk not in ids]
    return list(same.filter(pk__in=[*ids, *others[: MAX_NEIGHBOURS - len(ids)]]))


def _guilds_of(user: Actor, channel_ids: Collection[int]) -> set[int | None]:
    """Return the guilds of those of the channels that the user may open; None among them for direct messages."""
    if not channel_ids:
        return set()
    here = visible_channels(user).filter(pk__in=channel_ids)
    return set(here.order_by().values_list("guild_id", flat=True).distinct())
