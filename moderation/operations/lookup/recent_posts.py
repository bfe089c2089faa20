"""What a chat user posted last: how much in the last hour and day, and in all; where, and the newest messages."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.utils import timezone

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message
from chatstore.domain.milliseconds import DAY_MS, HOUR_MS
from chatstore.domain.snowflakes import first_id_at, time_of, unix_ms
from chatstore.models import Channel, ChatUser
from chatstore.operations.gateway.timeline import name_users
from chatstore.store import scans
from chatstore.store.author_posts import read_author_posts
from chatstore.store.authors import author_buckets
from moderation.operations.access.visibility import Actor, require, visible_channels
from moderation.operations.lookup.author_places import first_places

NEWEST_SHOWN = 5

COUNT_SECONDS = 0.3
"""Time within which all messages are counted before a page is shown: of a raider these are few."""

MAX_PLACES = 256
"""Buckets that are read, newest first; a user is rarely in as many channels within ten days."""


@dataclass(frozen=True, slots=True)
class RecentPosts:
    """The newest messages of a user in the channels that the viewer may open.

    in_hour, in_day: numbers of messages; at least as many if is_complete is false. in_all: the same of all messages,
    and is_whole. by_channel: those of the day, by channel id; all_by_channel, by_guild: all, by the id of the channel
    and of its guild, None for direct messages. last_ids: the last message by channel, where it is known.
    ids_by_channel: all messages by channel, ascending; empty unless is_whole. oldest_at: when the oldest message that
    still exists was posted; None without any, or unless is_whole. newest: newest first.
    """

    in_hour: int
    in_day: int
    in_all: int
    by_channel: Mapping[int, int]
    all_by_channel: Mapping[int, int]
    by_guild: Mapping[int | None, int]
    last_ids: Mapping[int, int]
    ids_by_channel: Mapping[int, Sequence[int]]
    is_complete: bool
    is_whole: bool
    oldest_at: dt.datetime | None
    newest: Sequence[tuple[Channel, Message]]
    users: Mapping[int, ChatUser]


def recent_posts_of(user: Actor, author_id: int, *, counts_all: bool = False) -> RecentPosts:
    """Return what the author posted last. Raises `Forbidden`, `StoreUnavailable`.

    Reading takes `PAGE_DEADLINE_SECONDS` at most. counts_all: count all messages for so long, too.
    """
    require(user, "chatstore.view_chatuser")
    now_ms, deadline = unix_ms(timezone.now()), settings.PAGE_DEADLINE_SECONDS
    day, hour = first_id_at(now_ms - DAY_MS), first_id_at(now_ms - HOUR_MS)
    places = first_places(author_buckets(author_id), visible_channels(user), limit=MAX_PLACES)
    found = read_author_posts(
        author_id,
        places.entries,
        since=day,
        at_least=NEWEST_SHOWN,
        seconds=deadline,
        more_seconds=deadline if counts_all else min(COUNT_SECONDS, deadline),
    )
    today = [(message_id, channel_id) for message_id, channel_id in found.posts if message_id >= day]
    reaches_day = bool(places.entries) and places.entries[-1][0] < bucket_of(day)
    is_complete = found.is_complete and (places.is_whole or reaches_day)
    is_whole = found.is_whole and places.is_whole
    newest = [(places.channels[message.channel_id], message) for message in _read_messages(found.posts[:NEWEST_SHOWN])]
    return RecentPosts(
        in_hour=sum(message_id >= hour for message_id, _ in today),
        in_day=len(today),
        in_all=len(found.posts),
        by_channel=Counter(channel_id for _, channel_id in today),
        all_by_channel=Counter(channel_id for _, channel_id in found.posts),
        by_guild=Counter(places.channels[channel_id].guild_id for _, channel_id in found.posts),
        last_ids=found.last_ids,
        ids_by_channel=_by_channel(found.posts) if is_whole else {},
        is_complete=is_complete,
        is_whole=is_whole,
        oldest_at=time_of(found.posts[-1][0]) if is_whole and found.posts else None,
        newest=newest,
        users=name_users(message for _, message in newest),
    )


def _by_channel(posts: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """Return the messages by channel, ascending. posts: newest first."""
    found: dict[int, list[int]] = {}
    for message_id, channel_id in reversed(posts):
        found.setdefault(channel_id, []).append(message_id)
    return found


def _read_messages(posts: Sequence[tuple[int, int]]) -> list[Message]:
    """Return the messages that still exist, newest first."""
    found = scans.read_messages_in((channel_id, message_id) for message_id, channel_id in posts)
    return sorted(found, key=lambda message: message.message_id, reverse=True)
