"""Channels that a user may open, by latest activity."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.models import Channel, ChatUser
from chatstore.models.chat import ChannelQuerySet
from chatstore.operations.gateway.timeline import (
    MAX_ACTIVE_CHANNELS,
    last_day_of,
    name_users,
    newest_messages,
    rank_by_activity,
)
from chatstore.store.activity import MAX_ACTIVE, last_active_channels, order_by_last_post, posts_of_hour
from moderation.operations.access.visibility import Actor, visible_channels
from moderation.operations.raids.detection import raided_channels

CHANNELS_WITH_NEWEST = 12
"""Channels whose newest message is read for the overview: one read each, all at the same time."""


@dataclass(frozen=True, slots=True)
class ActiveChannel:
    """Channel, its newest message if it was read, and the last day of its newest bucket."""

    channel: Channel
    newest: Message | None
    until: dt.date | None


@dataclass(frozen=True, slots=True)
class Overview:
    """Most recently active channels, those with a possible raid first, then the others.

    error: why the store could not be read. raided: ids of channels with a possible raid. users: authors of the newest
    messages and those whom these mention, by ID, as far as they are known. posts: messages of the last hour in the
    recent channels, by ID, if there are any.
    """

    recent: Sequence[ActiveChannel] = ()
    others: Sequence[ActiveChannel] = ()
    error: str = ""
    users: Mapping[int, ChatUser] = field(default_factory=dict)
    posts: Mapping[int, int] = field(default_factory=dict)
    raided: Collection[int] = ()

    @property
    def has_more(self) -> bool:
        """Return whether there may be channels that are in neither list."""
        return len(self.recent) + len(self.others) >= MAX_ACTIVE_CHANNELS


def channels_by_activity(user: Actor) -> Overview:
    """Return the channels by recent activity. If the store is unavailable, return the names and the error."""
    channels, raided = _channels_to_rank(user), raided_channels(user)
    try:
        ranked = sorted(rank_by_activity(channels), key=lambda entry: entry[0].pk not in raided)
        shown = [channel.pk for channel, bucket in ranked[:CHANNELS_WITH_NEWEST] if bucket is not None]
        newest = newest_messages(shown)
    except StoreUnavailable as error:
        others = [ActiveChannel(channel, None, None) for channel in channels]
        return Overview(others=others, error=error.text, raided=raided)
    described = [
        ActiveChannel(channel, newest.get(channel.pk), None if bucket is None else last_day_of(bucket))
        for channel, bucket in ranked
    ]
    recent = [entry for entry in described if entry.newest is not None]
    recent.sort(key=lambda entry: (entry.channel.pk in raided, entry.newest and entry.newest.message_id), reverse=True)
    others = [entry for entry in described if entry.newest is None]
    posts = {channel_id: sum(parts) for channel_id, parts in posts_of([entry.channel.pk for entry in recent]).items()}
    return Overview(recent=recent, others=others, users=name_users(newest.values()), posts=posts, raided=raided)


def posts_of(channel_ids: Collection[int]) -> dict[int, tuple[int, ...]]:
    """Return the posts of the last hour of channels, as `posts_of_hour`; none if they cannot be read."""
    try:
        return posts_of_hour(channel_ids)
    except StoreUnavailable:
        return {}


def _channels_to_rank(user: Actor) -> list[Channel]:
    """Return the channels with the newest messages, then the first ones by name: as many as one page reads."""
    try:
        channels = newest_among(visible_channels(user), limit=MAX_ACTIVE_CHANNELS)
    except StoreUnavailable:
        channels = []
    missing, known = MAX_ACTIVE_CHANNELS - len(channels), [channel.pk for channel in channels]
    return [*channels, *visible_channels(user).exclude(pk__in=known)[:missing]] if missing > 0 else channels


def newest_among(channels: ChannelQuerySet, *, limit: int, max_ranked: int | None = None) -> list[Channel]:
    """Return those of some channels with the newest messages, newest first. Raises `StoreUnavailable`.

    max_ranked: where most of them are less busy than others, only so many are compared, whichever they are.
    """
    # Their ids alone: a thousand rows are not needed to show one.
    ids = channels.order_by().values_list("pk", flat=True)
    active = last_active_channels(MAX_ACTIVE)
    known = set(ids.filter(pk__in=active)) if active else set()
    first = [channel_id for channel_id in active if channel_id in known][:limit]
    if len(first) < limit and len(active) == MAX_ACTIVE:
        # Other channels are busier than most of these.
        first = [*first, *order_by_last_post(list(ids.exclude(pk__in=first)[:max_ranked]))][:limit]
    found = channels.in_bulk(first) if first else {}
    return [found[channel_id] for channel_id in first if channel_id in found]
