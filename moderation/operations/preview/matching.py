"""Tests of rows by a selection, with what they need from Postgres: accounts of bots, and when authors joined.

Times of joining are read for all buckets that are read together, by one statement: those of the guild's members who
joined early enough before the end of the last bucket, and late enough for the first.
"""

from __future__ import annotations

import datetime as dt
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from chatstore.domain.buckets import BucketKey, bucket_window
from chatstore.domain.snowflakes import time_of, unix_ms
from chatstore.models import Channel, ChatUser, GuildMember
from moderation.domain.filters import Row
from moderation.domain.selection import Selection

Pick = Callable[[Sequence[Row]], list[Row]]

CHUNK_ROWS = 10_000
"""Members that are fetched at a time; a guild may have millions."""

_TICK = dt.timedelta(milliseconds=1)


class JoinTimes:
    """When members of a guild joined, in Unix milliseconds; 16 bytes each, since there may be millions."""

    def __init__(self) -> None:
        self._users, self._times = array("q"), array("q")

    def add(self, user_id: int, joined_ms: int) -> None:
        """Add a member; their ids ascend."""
        self._users.append(user_id)
        self._times.append(joined_ms)

    def get(self, user_id: int) -> int | None:
        """Return when a member joined; None if that is not known."""
        place = bisect_left(self._users, user_id)
        is_known = place < len(self._users) and self._users[place] == user_id
        return self._times[place] if is_known else None


class Matcher:
    """Matches rows by a selection. What it needs from Postgres is read once, or for buckets that are read together."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._bots = bots_of(selection)
        self._guilds: dict[int, int | None] = {}

    def for_buckets(self, keys: Collection[BucketKey]) -> Callable[[int], Pick]:
        """Return a function from a channel to the test of its rows in these buckets."""
        if not self._selection.join_minutes or not keys:
            pick = self._selection.matcher(bots=self._bots)
            return lambda _channel_id: pick
        channel_ids = {channel_id for channel_id, _ in keys}
        if missing := channel_ids - self._guilds.keys():
            self._guilds |= dict.fromkeys(missing)
            self._guilds |= dict(Channel.objects.filter(pk__in=missing).values_list("pk", "guild_id"))
        joins = self._read_joins({self._guilds[channel_id] for channel_id in channel_ids}, keys)
        picks = {
            guild_id: self._selection.matcher(bots=self._bots, joined=known.get) for guild_id, known in joins.items()
        }
        unknown = self._selection.matcher(bots=self._bots)
        return lambda channel_id: picks.get(self._guilds[channel_id] or 0, unknown)

    def _read_joins(self, guild_ids: Collection[int | None], keys: Collection[BucketKey]) -> Mapping[int, JoinTimes]:
        """Return when members joined, by guild, as far as it matters to messages in some buckets."""
        selection = self._selection
        buckets = [bucket for _, bucket in keys]
        first = max(bucket_window(min(buckets))[0], time_of(selection.first_id))
        last = min(bucket_window(max(buckets))[1], time_of(selection.last_id))
        members = GuildMember.objects.filter(
            guild_id__in=[guild_id for guild_id in guild_ids if guild_id is not None],
            joined_at__gte=first - dt.timedelta(minutes=selection.join_minutes),
            joined_at__lt=last + _TICK,
        )
        if selection.author_ids is not None:
            members = members.filter(user_id__in=selection.author_ids)
        rows = members.order_by("guild_id", "user_id").values_list("guild_id", "user_id", "joined_at")
        joins: dict[int, JoinTimes] = {}
        for guild_id, some in groupby(rows.iterator(chunk_size=CHUNK_ROWS), key=itemgetter(0)):
            known = joins[guild_id] = JoinTimes()
            for _, user_id, joined_at in some:
                if joined_at is not None:
                    known.add(user_id, unix_ms(joined_at))
        return joins


def bots_of(selection: Selection) -> frozenset[int]:
    """Return the accounts of bots, if the selection has a condition on them."""
    if "webhook_id" not in selection.columns:
        return frozenset()
    return frozenset(ChatUser.objects.filter(is_bot=True).values_list("id", flat=True))
