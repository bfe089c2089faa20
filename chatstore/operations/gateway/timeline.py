"""Timeline of a channel for display: a page of messages with names and quotes, and counts by bucket.

Read-only; callers check permissions.
"""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from django.db.models import QuerySet
from django.utils import timezone

from chatstore.domain.buckets import bucket_days
from chatstore.domain.live import Live
from chatstore.domain.mentions import find_mentioned_users
from chatstore.domain.messages import Message, Page
from chatstore.models import Channel, ChatUser
from chatstore.store import figures, ledger
from chatstore.store import messages as message_store
from chatstore.store.figures import Figure
from chatstore.store.reading import reader

PAGE_SIZE = 50

MAX_ACTIVE_CHANNELS = 100
"""Maximum number of channels whose ledger one page reads; others are found by searching."""

NEWEST_BUCKET_SECONDS = 30
MAX_KNOWN_NEWEST = 10_000

_NEVER_READ: tuple[float, int | None] = (-math.inf, None)
_known_newest: dict[int, tuple[float, int | None]] = {}
"""Newest buckets of channels that this process has read, with the time of reading."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Page of messages, oldest first, with the users and quotes that it refers to.

    quoted: messages that replies refer to, by (channel id, message id); None if one no longer exists.
    """

    page: Page
    messages: Sequence[Message]
    users: Mapping[int, ChatUser]
    quoted: Mapping[tuple[int, int], Message | None] = field(default_factory=dict)

    @property
    def with_quoted(self) -> list[Message]:
        """Return the messages, and those that are quoted."""
        return [*self.messages, *(message for message in self.quoted.values() if message is not None)]

    def until(self, last: int) -> Timeline:
        """Return the page without the messages after an ID; if it reaches that far, no newer page follows."""
        if self.page.newer is not None and self.page.newer < last:
            return self
        messages = [message for message in self.messages if message.message_id <= last]
        return replace(self, messages=messages, page=replace(self.page, newer=None))


@dataclass(frozen=True, slots=True)
class BucketCount:
    """Number of messages in a bucket; None if it was never counted. measured_at: when it was counted."""

    bucket: int
    count: int | None
    measured_at: dt.datetime | None = None


def open_timeline(
    channel_id: int,
    *,
    before: int | None = None,
    after: int | None = None,
    around: int | None = None,
    limit: int = PAGE_SIZE,
) -> Timeline:
    """Return a page of the channel: the newest one, or the one before, after or around a message id.

    before, after: exclusive. Raises `StoreUnavailable`.
    """
    if around is not None:
        page = reader.read_around(channel_id, around, limit)
    else:
        page = reader.read_page(channel_id, before=before, after=after, limit=limit)
    return describe_messages(page)


def describe_messages(page: Page) -> Timeline:
    """Add names and quotes to a page, with one Postgres query and one window of reads."""
    messages = tuple(reversed(page.messages))
    quoted = _read_quoted(messages)
    shown = [*messages, *(message for message in quoted.values() if message is not None)]
    return Timeline(page, messages, name_users(shown), quoted)


def name_users(messages: Iterable[Message]) -> dict[int, ChatUser]:
    """Return the authors of the messages and the users they mention, by id; unknown users are omitted."""
    shown, ids = list(messages), set[int]()
    for message in shown:
        ids.add(message.author_id)
        ids.update(message.mentions)
    return _chat_users().in_bulk([*ids, *find_mentioned_users(shown, known=ids)])


def name_mentioned_users(messages: Iterable[Message], *, known: Mapping[int, ChatUser]) -> dict[int, ChatUser]:
    """Return users that are known, and those that the texts of messages mention besides them, by id."""
    mentioned = find_mentioned_users(messages, known=known)
    return {**known, **(_chat_users().in_bulk(mentioned) if mentioned else {})}


@cache
def _chat_users() -> QuerySet[ChatUser]:
    """Return the queryset of which each page uses a copy: to build it takes longer than Postgres needs for its rows."""
    return ChatUser.objects.with_namesakes()


def _read_quoted(messages: Sequence[Message]) -> dict[tuple[int, int], Message | None]:
    if not messages:
        return {}
    channel_id = messages[0].channel_id
    loaded = {message.message_id: message for message in messages}
    # References to other channels are not followed; the reader may not have access there.
    references = (message.reference for message in messages if message.reference is not None)
    wanted = {message_id for place, message_id in references if place == channel_id and message_id is not None}
    known = loaded | message_store.read_messages(channel_id, sorted(wanted - loaded.keys()))
    return {(channel_id, message_id): known.get(message_id) for message_id in wanted}


def count_buckets(channel_id: int) -> list[BucketCount]:
    """Return the message counts of the channel's buckets, oldest first, from the ledger and the figures."""
    return count_buckets_in([channel_id])[channel_id]


def count_buckets_in(channel_ids: Sequence[int]) -> dict[int, list[BucketCount]]:
    """Return the same of several channels, by channel. Figures are read only of buckets that the ledger cannot count.

    Messages that are read next for the same page use the ledger that was read here.
    """
    ledgers = ledger.read_ledgers_for_page(channel_ids)
    uncounted = {i: [bucket for bucket, live in rows if not live.is_known] for i, rows in ledgers.items()}
    spans = {channel_id: (min(buckets), max(buckets)) for channel_id, buckets in uncounted.items() if buckets}
    measured = figures.read_figure_in(spans, "live_rows")
    return {
        channel_id: [_count_bucket(bucket, live, measured.get((channel_id, bucket))) for bucket, live in reversed(rows)]
        for channel_id, rows in ledgers.items()
    }


def _count_bucket(bucket: int, live: Live, figure: Figure | None) -> BucketCount:
    if live.is_known or figure is None:
        return BucketCount(bucket, live.count)
    return BucketCount(bucket, int(figure.value), figure.measured_at)


def rank_by_activity(channels: Sequence[Channel]) -> list[tuple[Channel, int | None]]:
    """Return channels with their newest bucket that may contain messages, most recent first.

    Those of one bucket keep their order. None: nothing was ever written, or nothing is left.
    """
    candidates = channels[:MAX_ACTIVE_CHANNELS]
    newest = _newest_buckets([channel.pk for channel in candidates])
    ranked = [(channel, newest[channel.pk]) for channel in candidates]
    return sorted(ranked, key=lambda pair: -(pair[1] if pair[1] is not None else -(10**9)))


def _newest_buckets(channel_ids: Sequence[int]) -> dict[int, int | None]:
    """Return the newest bucket of each channel that may contain messages, known since `NEWEST_BUCKET_SECONDS` at most.

    A bucket is ten days long, and a page of channels reads hundreds.
    """
    now = time.monotonic()
    known = {channel_id: _known_newest.get(channel_id, _NEVER_READ) for channel_id in channel_ids}
    due = [channel_id for channel_id, (read_at, _) in known.items() if now - read_at > NEWEST_BUCKET_SECONDS]
    if len(_known_newest) > MAX_KNOWN_NEWEST:
        _known_newest.clear()
    for channel_id, rows in ledger.read_newest_rows(due).items():
        newest = next((bucket for bucket, live in rows if not live.is_empty), None)
        known[channel_id] = _known_newest[channel_id] = (now, newest)
    return {channel_id: bucket for channel_id, (_, bucket) in known.items()}


def last_day_of(bucket: int) -> dt.date:
    """Return the last day of a bucket's window; today for the open bucket."""
    return min(bucket_days(bucket)[1], timezone.now().date())


def newest_messages(channel_ids: Sequence[int]) -> dict[int, Message]:
    """Return the newest message of each channel, without channels that have none in their newest buckets."""
    return reader.read_newest(channel_ids)
