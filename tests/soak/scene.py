"""Two channels with two and a half years of messages, and their expected states."""

from __future__ import annotations

import datetime as dt
import hashlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, TypeVar

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.store import authors, ledger, messages, scans
from chatstore.store.reading.reader import read_page
from moderation.domain.filters import Author
from moderation.domain.planner import DeleteStrategy
from moderation.domain.selection import Selection
from moderation.models import Purge
from tests.moderation.channels import VICTOR, WILMA, buckets_of, make_channel, old_ids, preview, recent_ids

MAX_ATTEMPTS = 10

POSTER = 73
"""Posts during the whole run; none of its stored messages may be lost."""

BUCKETS = 90
MESSAGES_PER_SMALL_BUCKET = 90
RECENT = 1_500
FULL_ROW_EVERY = 50
"""One in so many messages has every column set."""

STRATEGIES = (DeleteStrategy.ROWS, DeleteStrategy.RANGES, DeleteStrategy.DROP, DeleteStrategy.REWRITE)

KEEP_ONE_IN = {DeleteStrategy.ROWS: 10, DeleteStrategy.RANGES: 130, DeleteStrategy.REWRITE: 4}
"""One in so many messages of a bucket is by another author; none in a dropped bucket."""

SIZE_FOR_REWRITES = 270_000
"""With fewer messages, no bucket has so many ranges that some are joined."""

Snapshot = dict[tuple[int, int], str]
"""sha256 over all rows with all columns, by channel and bucket; empty buckets are omitted."""


Row = tuple[Any, ...]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Scene:
    """A previewed purge, its strategies, and snapshots of its channels: complete, and with the survivors only."""

    channels: tuple[Channel, ...]
    buckets: Collection[int]
    purge: Purge
    strategies: Collection[DeleteStrategy]
    whole: Snapshot
    rest: Snapshot


def arrange_scene(moderator: User, random: Random, *, size: int) -> Scene:
    """Write about `size` messages, three quarters of the buckets full, and preview a purge of Victor's."""
    channels = (make_channel(), make_channel())
    full = BUCKETS * len(channels) * 3 // 4
    buckets = set()
    for channel in channels:
        for ago in range(1, BUCKETS + 1):
            strategy = random.choice(STRATEGIES)
            ids = old_ids(
                MESSAGES_PER_SMALL_BUCKET if strategy is DeleteStrategy.ROWS else size // full, buckets_ago=ago
            )
            buckets.add(write_bucket(channel, ids, keep_one_in=KEEP_ONE_IN.get(strategy, len(ids) + 1)))
    recent = recent_ids(RECENT, minutes_ago=20)
    for bucket in buckets_of(recent):
        write_bucket(channels[0], [one for one in recent if bucket_of(one) == bucket], keep_one_in=40)
    # Posts during the run are in the open bucket or in the one after it.
    buckets.update(buckets_of([*recent, *recent_ids(2, minutes_ago=0, apart_ms=30 * MINUTE_MS)]))
    purge = preview(moderator, select_victor(*channels))
    return Scene(
        channels,
        buckets,
        purge,
        strategies=set(STRATEGIES if size >= SIZE_FOR_REWRITES else STRATEGIES[:-1]),
        whole=snapshot_of(channels, buckets),
        rest=snapshot_of(channels, buckets, without=(POSTER, VICTOR)),
    )


def select_victor(*channels: Channel) -> Selection:
    """Select Victor's messages, pinned or not."""
    ids = tuple(channel.id for channel in channels)
    return Selection(channel_ids=ids, where=Author((VICTOR,)), with_pinned=True)


def write_bucket(channel: Channel, ids: list[int], *, keep_one_in: int) -> int:
    """Write messages of Victor and some of another author with their own time as timestamp; return the bucket."""
    bucket = bucket_of(ids[0])
    ledger.ensure_row(channel.id, bucket)
    authors.ensure_author_buckets({(author, bucket, channel.id) for author in (VICTOR, WILMA)})
    rows = [
        write_message(
            channel.id, message_id, WILMA if place % keep_one_in == 0 else VICTOR, rich=not place % FULL_ROW_EVERY
        )
        for place, message_id in enumerate(ids, start=1)
    ]
    with_retries(lambda: messages.insert_messages(rows, stamp_us=messages.posted_stamp))
    return bucket


def write_message(channel_id: int, message_id: int, author: int, *, rich: bool) -> Message:
    """Return a message; a rich one has every column set."""
    content = f"message {message_id} with the text that an ordinary user writes, some eighty characters"
    if not rich:
        return Message(channel_id=channel_id, message_id=message_id, author_id=author, content=content)
    return Message(
        channel_id=channel_id,
        message_id=message_id,
        author_id=author,
        content=content,
        type=19,
        edited_at=dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC),
        flags=4,
        pinned=True,
        webhook_id=9,
        author_name="Hook",
        attachments=('{"filename": "a.png"}',),
        embeds=('{"title": "x"}', "{}"),
        stickers=("{}",),
        reactions={"👍": 3, "x:5": 1},
        mentions=(7, 8),
        reference=(channel_id, message_id - 1),
    )


def snapshot_of(
    channels: Collection[Channel], buckets: Collection[int], *, without: Collection[int] = (POSTER,)
) -> Snapshot:
    """Return the rows readable at quorum, except those of some authors; orphan rows count too."""
    snapshot: Snapshot = {}
    for channel in channels:
        for bucket in buckets:
            rows = [row for row in rows_of(channel, bucket) if row[1] not in without]
            if rows:
                snapshot[channel.id, bucket] = hashlib.sha256(repr(rows).encode()).hexdigest()
    return snapshot


def rows_of(channel: Channel, bucket: int) -> list[Row]:
    """Return every row with all columns, newest first."""
    return with_retries(lambda: [row for page in scans.read_whole_rows(channel.id, bucket) for row in page])


def with_retries(function: Callable[[], Result]) -> Result:
    """Retry an idempotent function while the store, busy or just restarted, does not answer in time."""
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return function()
        except StoreUnavailable:
            time.sleep(1)
    return function()


def ids_of(channel: Channel, buckets: Collection[int]) -> set[int]:
    """Return the ids of all messages at quorum."""
    return with_retries(
        lambda: {
            message_id
            for bucket in buckets
            for page in scans.read_all_ids(channel.id, bucket)
            for message_id, author in page
            if author is not None
        }
    )


def read_all_pages(channel: Channel) -> set[int]:
    """Page back to the beginning; return all message ids on the pages."""
    seen: set[int] = set()
    before = None
    while True:
        page = with_retries(partial(read_page, channel.id, before=before, limit=500))
        seen.update(message.message_id for message in page.messages)
        if page.older is None:
            return seen
        before = page.older
