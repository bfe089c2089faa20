"""Two channels with two and a half years of messages, and what they must look like afterwards."""

from __future__ import annotations

import datetime as dt
import hashlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, TypeVar

from django.contrib.auth.models import User

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.models import Channel
from chatstore.store import ledger, messages, scans
from chatstore.store.reading.reader import read_page
from moderation.domain.filters import Author
from moderation.domain.planner import Way
from moderation.domain.selection import Selection
from moderation.models import Purge
from tests.moderation.rooms import VICTOR, WILMA, buckets_of, make_channel, old_ids, preview, recent_ids

TRIES = 10

TALKER = 73
"""Posts while everything happens; nothing that was stored of it may go."""

BUCKETS = 90
ROWS_OF_A_BUCKET = 90
RECENT = 1_500
RICH_EVERY = 50
"""One message in so many has every column set."""

STAYS_EVERY = {Way.ROWS: 10, Way.RANGES: 130, Way.REWRITE: 4}
"""Of the messages of a bucket, one in so many is a stranger's; none of those whose bucket is dropped."""

Picture = dict[tuple[int, int], str]
"""sha256 over all rows with all columns, by channel and bucket; buckets without any are left out."""


Row = tuple[Any, ...]

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Scene:
    """A purge that is ready, and pictures of its channels: with everything, and with what must stay."""

    channels: tuple[Channel, ...]
    buckets: Collection[int]
    purge: Purge
    whole: Picture
    rest: Picture


def arrange_scene(moderator: User, random: Random, *, size: int) -> Scene:
    """Writes about `size` messages, three quarters of the buckets full, and previews what Victor loses."""
    channels = (make_channel(), make_channel())
    full = BUCKETS * len(channels) * 3 // 4
    buckets = set()
    for channel in channels:
        for ago in range(1, BUCKETS + 1):
            way = random.choice((Way.ROWS, Way.RANGES, Way.DROP, Way.REWRITE))
            ids = old_ids(ROWS_OF_A_BUCKET if way is Way.ROWS else size // full, buckets_ago=ago)
            buckets.add(write_bucket(channel, ids, stays_every=STAYS_EVERY.get(way, len(ids) + 1)))
    recent = recent_ids(RECENT, minutes_ago=20)
    for bucket in buckets_of(recent):
        write_bucket(channels[0], [one for one in recent if bucket_of(one) == bucket], stays_every=40)
    # What is said while it runs: in the open bucket, or in the one after it.
    buckets.update(buckets_of([*recent, *recent_ids(2, minutes_ago=0, apart_ms=30 * 60_000)]))
    purge = preview(moderator, select_victor(*channels))
    return Scene(
        channels,
        buckets,
        purge,
        whole=picture_of(channels, buckets),
        rest=picture_of(channels, buckets, without=(TALKER, VICTOR)),
    )


def select_victor(*channels: Channel) -> Selection:
    """What Victor wrote there, pinned or not."""
    ids = tuple(channel.id for channel in channels)
    return Selection(channel_ids=ids, where=Author((VICTOR,)), with_pinned=True)


def write_bucket(channel: Channel, ids: list[int], *, stays_every: int) -> int:
    """Victor's messages, and a stranger's among them, stamped as if posted at their own time; gives the bucket."""
    bucket = bucket_of(ids[0])
    ledger.ensure_row(channel.id, bucket)
    rows = [
        write_message(
            channel.id, message_id, WILMA if place % stays_every == 0 else VICTOR, rich=not place % RICH_EVERY
        )
        for place, message_id in enumerate(ids, start=1)
    ]
    patiently(lambda: messages.insert_messages(rows, stamp_us=messages.posted_stamp))
    return bucket


def write_message(channel_id: int, message_id: int, author: int, *, rich: bool) -> Message:
    """One message; a rich one has every column set."""
    content = f"message {message_id} of somebody who writes as people do, about eighty characters"
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


def picture_of(
    channels: Collection[Channel], buckets: Collection[int], *, without: Collection[int] = (TALKER,)
) -> Picture:
    """What stands there at quorum, but for some authors' messages; a row without an author counts too."""
    picture: Picture = {}
    for channel in channels:
        for bucket in buckets:
            rows = [row for row in rows_of(channel, bucket) if row[1] not in without]
            if rows:
                picture[channel.id, bucket] = hashlib.sha256(repr(rows).encode()).hexdigest()
    return picture


def rows_of(channel: Channel, bucket: int) -> list[Row]:
    """Every row with all columns, newest first."""
    return patiently(lambda: [row for page in scans.read_whole_rows(channel.id, bucket) for row in page])


def patiently(act: Callable[[], Answer]) -> Answer:
    """What may be done twice is tried again where the store, busy or just back, does not answer in time."""
    for _ in range(TRIES - 1):
        try:
            return act()
        except StoreUnavailable:
            time.sleep(1)
    return act()


def ids_of(channel: Channel, buckets: Collection[int]) -> set[int]:
    """Every message that stands there, at quorum."""
    return patiently(
        lambda: {
            message_id
            for bucket in buckets
            for page in scans.read_all_ids(channel.id, bucket)
            for message_id, author in page
            if author is not None
        }
    )


def read_through(channel: Channel) -> set[int]:
    """Every message that people see who page back to the beginning."""
    seen: set[int] = set()
    before = None
    while True:
        page = patiently(partial(read_page, channel.id, before=before, limit=500))
        seen.update(message.message_id for message in page.messages)
        if page.older is None:
            return seen
        before = page.older
