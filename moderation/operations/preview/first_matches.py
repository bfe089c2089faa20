"""First matches of a selection while it is being typed: the newest buckets of its scope, until a deadline.

What is being read at the deadline still counts, so that a busy machine finds something too. Nothing is stored. The
preview that follows scans everything.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from django.conf import settings
from django.utils import timezone

from chatstore.domain.buckets import BucketKey, bucket_of, bucket_window
from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID, Message
from chatstore.domain.snowflakes import time_of
from chatstore.models import Channel, ChatUser
from chatstore.operations.gateway.timeline import name_users
from chatstore.store import authors, ledger, messages, scans
from moderation.domain.filters import Row
from moderation.domain.selection import Selection
from moderation.operations.access.visibility import ADD_PURGE, Actor, require, visible_channels
from moderation.operations.lookup.author_places import first_places
from moderation.operations.preview.matching import Matcher

SECONDS = 0.3
"""Time in which reads begin: the form asks again whenever it was changed."""

MORE_SECONDS = 0.3
"""Time after that in which reads of authors' first messages go on."""

MATCHES_SHOWN = 5

MAX_CHANNELS = 20
"""Channels that are searched of a selection without authors; a whole guild may have thousands."""

MAX_PLACES = 500
"""Buckets of authors that are searched."""

PAGE_ROWS = 500

READS_AHEAD = 6
"""Buckets whose first pages are read at the same time; those of the newest ones are always read."""


@dataclass(frozen=True, slots=True)
class FirstMatches:
    """Matches found so far. count: of all that was searched. newest: some of them, newest first.

    is_complete: the whole scope was searched. back_to: otherwise, everything from then on was; None: only a part.
    """

    count: int
    newest: Sequence[tuple[Channel, Message]]
    users: Mapping[int, ChatUser]
    is_complete: bool
    back_to: dt.datetime | None


def find_first_matches(user: Actor, selection: Selection) -> FirstMatches:
    """Search the newest buckets of a selection for a moment. Raises `Forbidden`, `StoreUnavailable`."""
    require(user, ADD_PURGE)
    end = time.monotonic() + SECONDS
    channels, places, is_whole = _list_places(user, selection)
    found, stopped_at = _search(selection, places, end=end)
    shown = sorted((match[:2] for match in found), reverse=True)[:MATCHES_SHOWN]
    newest = [(channels[message.channel_id], message) for message in _read(shown)]
    return FirstMatches(
        count=len(found),
        newest=newest,
        users=name_users(message for _, message in newest),
        is_complete=is_whole and stopped_at is None,
        back_to=_searched_from(stopped_at, len(channels)) if stopped_at and is_whole else None,
    )


@dataclass(frozen=True, slots=True)
class AuthorCounts:
    """Messages found so far of each author. is_complete: the whole scope was searched."""

    by_author: Mapping[int, int]
    is_complete: bool


def count_by_author(user: Actor, selection: Selection) -> AuthorCounts:
    """Count the matches of each author in the newest buckets for a moment. Raises `Forbidden`, `StoreUnavailable`."""
    require(user, "moderation.add_purge")
    end = time.monotonic() + SECONDS
    _, places, is_whole = _list_places(user, selection)
    found, stopped_at = _search(selection, places, end=end)
    return AuthorCounts(Counter(author_id for _, _, author_id in found), is_whole and stopped_at is None)


@dataclass(frozen=True, slots=True)
class _Stop:
    """Where the search is not complete first. oldest: the last row that was read in the bucket; None: none was."""

    bucket: int
    oldest: int | None


def _search(
    selection: Selection, places: Sequence[BucketKey], *, end: float
) -> tuple[list[tuple[int, int, int]], _Stop | None]:
    """Return (message id, channel id, author id) of the matches, and where the search ended; None: all was searched."""
    matcher = Matcher(selection, until=end + MORE_SECONDS)
    opened: int | None = None
    found: list[tuple[int, int, int]] = []
    stop, searched = None, 0
    for channel_id, bucket, pages in _open_each(selection, places, end=end):
        searched += 1
        if bucket != opened:
            # The newest come first, so that the times of joining of years are not read before anything is found.
            tests, opened = matcher.for_buckets([key for key in places if key[1] == bucket]), bucket
        for rows in pages:
            found += [(row[MESSAGE_ID], channel_id, row[AUTHOR_ID]) for row in tests.pick(channel_id, rows)]
            if not matcher.is_complete:
                stop = stop or _Stop(bucket, None)
            if time.monotonic() > end and len(rows) == PAGE_ROWS:
                stop = stop or _Stop(bucket, rows[-1][MESSAGE_ID])
                break
    if stop is None and searched < len(places):
        stop = _Stop(places[searched][1], None)
    return found, stop


def _searched_from(stop: _Stop, channel_count: int) -> dt.datetime | None:
    """Return the time from which on all channels were searched; None if that is not even the open bucket's end."""
    if channel_count == 1 and stop.oldest is not None:
        return time_of(stop.oldest)
    end = bucket_window(stop.bucket)[1]
    return end if end < timezone.now() else None


def _list_places(user: Actor, selection: Selection) -> tuple[Mapping[int, Channel], list[BucketKey], bool]:
    """Return the channels, their buckets with the newest first, and whether these are all that may have matches."""
    scope = visible_channels(user, ADD_PURGE).exclude(pk__in=selection.except_channel_ids)
    if selection.channel_ids:
        scope = scope.filter(pk__in=selection.channel_ids)
    elif selection.guild_id is not None:
        scope = scope.filter(guild_id=selection.guild_id)
    first, last = bucket_of(selection.first_id), bucket_of(selection.last_id)
    if selection.author_ids is not None and settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN:
        index = authors.buckets_of_authors(selection.author_ids, first=first, last=last)
        found = first_places(index, scope, limit=MAX_PLACES, chosen=frozenset(selection.channel_ids))
        keys = {(channel_id, bucket) for bucket, channel_id in found.entries}
        return found.channels, _newest_first(keys), found.is_whole
    some = list(scope.order_by("-pk")[: MAX_CHANNELS + 1])
    channels = {channel.pk: channel for channel in some[:MAX_CHANNELS]}
    keys = {
        (channel_id, bucket)
        for channel_id, rows in ledger.read_ledgers(list(channels))
        for bucket, live in rows
        if live.clip(selection.first_id, selection.last_id) is not None
    }
    return channels, _newest_first(keys), len(some) <= MAX_CHANNELS


def _newest_first(keys: set[BucketKey]) -> list[BucketKey]:
    return sorted(keys, key=lambda key: (-key[1], key[0]))


def _open_each(
    selection: Selection, places: Sequence[BucketKey], *, end: float
) -> Iterator[tuple[int, int, Iterator[list[Row]]]]:
    """Yield (channel id, bucket, pages newest first), with several first pages in flight. end: no more are requested.

    Each page in flight is bounded by the time-out of its statement.
    """
    opened = (
        (
            channel_id,
            bucket,
            messages.iterate_rows(
                channel_id,
                bucket,
                first=selection.first_id,
                last=selection.last_id,
                columns=selection.columns,
                fetch_size=PAGE_ROWS,
            ),
        )
        for channel_id, bucket in places
    )
    ahead = deque(islice(opened, READS_AHEAD))
    while ahead:
        yield ahead.popleft()
        if time.monotonic() <= end:
            ahead.extend(islice(opened, 1))


def _read(found: Sequence[tuple[int, int]]) -> list[Message]:
    """Return the messages that still exist, newest first."""
    wanted: dict[BucketKey, list[int]] = {}
    for message_id, channel_id in found:
        wanted.setdefault((channel_id, bucket_of(message_id)), []).append(message_id)
    rows = (
        messages.to_message(channel_id, row)
        for (channel_id, _), some in scans.read_rows_with_writetime_in(wanted)
        for row in some
        if row[AUTHOR_ID] is not None
    )
    return sorted(rows, key=lambda message: message.message_id, reverse=True)
