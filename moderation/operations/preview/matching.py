"""Tests of rows by a selection, with what they need besides: accounts of bots, and when authors joined or posted first.

Times of joining are read for all buckets that are read together, by one statement: those of the guild's members who
joined early enough before the end of the last bucket, and late enough for the first.

When authors posted first is read only for the authors of rows that meet all other conditions, and exactly only if the
period of ten days does not decide.
"""

from __future__ import annotations

import datetime as dt
import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from chatstore.domain.buckets import BucketKey, bucket_window
from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID
from chatstore.domain.snowflakes import ms_of, time_of, unix_ms
from chatstore.models import Channel, ChatUser, GuildMember
from moderation.domain.filters import JoinedAt, Row, joins_unknown
from moderation.domain.selection import Selection
from moderation.operations.steps.first_seen import FirstSeenReader, proceed

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


class _Test(NamedTuple):
    """Tests of rows. possible: finds all that could match, whenever their authors posted first; exact: that match."""

    possible: Pick
    exact: Pick


class BucketTests:
    """Tests of the rows in some buckets, by channel.

    read: reads what is needed to decide about rows that may match; None: nothing is.
    """

    def __init__(self, test_of: Callable[[int], _Test], read: Callable[[Sequence[Row]], None] | None) -> None:
        self._test_of, self._read = test_of, read

    @property
    def has_reads(self) -> bool:
        """True if a test may have to read something."""
        return self._read is not None

    def prepare(self, pages: Iterable[tuple[int, Sequence[Row]]]) -> None:
        """Read what is needed to decide about rows of several channels, together."""
        if self._read is not None:
            self._read([row for channel_id, rows in pages for row in self._test_of(channel_id).possible(rows)])

    def pick(self, channel_id: int, rows: Sequence[Row]) -> list[Row]:
        """Return the matching rows of a channel, in their order. Raises `StoreUnavailable`."""
        test = self._test_of(channel_id)
        if self._read is None:
            return test.exact(rows)
        found = test.possible(rows)
        self._read(found)
        return test.exact(found)


class Matcher:
    """Matches rows by a selection. What it needs is read once, or for buckets that are read together.

    until: `time.monotonic()` at which it stops reading first messages. Rows about which that leaves a doubt do not
    match, and `is_complete` becomes False.
    """

    def __init__(self, selection: Selection, *, until: float = math.inf) -> None:
        self._selection = selection
        self._bots = bots_of(selection)
        self._guilds: dict[int, int | None] = {}
        self._first_seen = FirstSeenReader(until=until)

    @property
    def is_complete(self) -> bool:
        """True if all that was needed could be read."""
        return self._first_seen.is_complete

    def for_buckets(self, keys: Collection[BucketKey], *, between: Callable[[], None] = proceed) -> BucketTests:
        """Return the tests of the rows in these buckets.

        between: called from time to time while a test reads when authors posted first, which may take a minute.
        """

        def read(rows: Sequence[Row]) -> None:
            self._read_first_seen(rows, between)

        read_first = read if self._selection.first_seen_hours else None
        if not self._selection.join_minutes or not keys:
            test = self._make_test()
            return BucketTests(lambda _channel_id: test, read_first)
        channel_ids = {channel_id for channel_id, _ in keys}
        if missing := channel_ids - self._guilds.keys():
            self._guilds |= dict.fromkeys(missing)
            self._guilds |= dict(Channel.objects.filter(pk__in=missing).values_list("pk", "guild_id"))
        joins = self._read_joins({self._guilds[channel_id] for channel_id in channel_ids}, keys)
        tests = {guild_id: self._make_test(joined=known.get) for guild_id, known in joins.items()}
        unknown = self._make_test()
        return BucketTests(lambda channel_id: tests.get(self._guilds[channel_id] or 0, unknown), read_first)

    def _make_test(self, *, joined: JoinedAt = joins_unknown) -> _Test:
        make = partial(self._selection.matcher, bots=self._bots, joined=joined)
        return _Test(make(first_seen=None), make(first_seen=self._first_seen.get))

    def _read_first_seen(self, rows: Sequence[Row], between: Callable[[], None]) -> None:
        """Read when the authors of some rows posted first, as exactly as is needed to decide about the rows."""
        reader, hours = self._first_seen, self._selection.first_seen_hours
        reader.read_periods({row[AUTHOR_ID] for row in rows}, between=between)
        unclear: dict[int, int] = {}
        for row in rows:
            message_id, author_id = row[MESSAGE_ID], row[AUTHOR_ID]
            seen, ms = reader.get(author_id), ms_of(message_id)
            if seen is not None and not all(seen.is_clear(ms, limit) for limit in hours):
                unclear[author_id] = min(unclear.get(author_id, message_id), message_id)
        reader.read_exactly(unclear, between=between)

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
