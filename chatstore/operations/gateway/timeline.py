"""Timeline of a channel for display: a page of messages with names and quotes, and counts by bucket.

Read-only; callers check permissions.
"""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils import timezone

from chatstore.domain.buckets import bucket_days
from chatstore.domain.messages import Message, Page
from chatstore.models import Channel, ChatUser
from chatstore.store import cassandra, figures, ledger
from chatstore.store import messages as message_store
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
    ids = set()
    for message in messages:
        ids.add(message.author_id)
        ids.update(message.mentions)
    return ChatUser.objects.in_bulk(ids)


def _read_quoted(messages: Sequence[Message]) -> dict[tuple[int, int], Message | None]:
    loaded = {(message.channel_id, message.message_id): message for message in messages}
    wanted = {
        (message.reference[0], message.reference[1])
        for message in messages
        if message.reference is not None and message.reference[1] is not None
    }
    # References to other channels are not followed; the reader may not have access there.
    own = {messages[0].channel_id} if messages else set()
    quoted: dict[tuple[int, int], Message | None] = {}
    for channel_id, message_id in sorted(wanted):
        if channel_id in own:
            key = (channel_id, message_id)
            quoted[key] = loaded.get(key) or message_store.read_message(channel_id, message_id)
    return quoted


def count_buckets(channel_id: int) -> list[BucketCount]:
    """Return the message counts of the channel's buckets, oldest first, from the ledger and the figures."""
    measured = figures.read_figure(channel_id, "live_rows")
    counts = []
    for bucket, live in sorted(ledger.read_ledger(channel_id)):
        figure = measured.get(bucket)
        if live.is_known:
            counts.append(BucketCount(bucket, live.count))
        elif figure is not None:
            counts.append(BucketCount(bucket, int(figure.value), figure.measured_at))
        else:
            counts.append(BucketCount(bucket, None))
    return counts


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
    jobs = [
        ("SELECT bucket, live FROM bucket_ledger WHERE channel_id = ? LIMIT 8", (channel_id,)) for channel_id in due
    ]
    if len(_known_newest) > MAX_KNOWN_NEWEST:
        _known_newest.clear()
    for channel_id, rows in zip(due, cassandra.execute_window(jobs), strict=True):
        alive = [bucket for bucket, live in rows if live is None or live[2] != 0]
        known[channel_id] = _known_newest[channel_id] = (now, max(alive, default=None))
    return {channel_id: bucket for channel_id, (_, bucket) in known.items()}


def last_day_of(bucket: int) -> dt.date:
    """Return the last day of a bucket's window; today for the open bucket."""
    return min(bucket_days(bucket)[1], timezone.now().date())


def newest_message(channel_id: int) -> Message | None:
    """Return the channel's newest message; None if there is none in its newest buckets."""
    return reader.read_newest(channel_id)
