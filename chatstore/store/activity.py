"""Channels in which messages were posted last, and how many per minute, in Redis: of 100,000 channels neither a page
nor a check can query each. Beside them, when messages of a channel were last deleted or restored by a purge.

Every process that posts messages sends its channels once a second, from a background thread, so that no post and no
step of a purge waits for it. If Redis loses them, they return with the next messages.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, cast

from chatstore.store.background import BackgroundSender
from chatstore.store.redis import redis_client

KEY = "active_channels"
MAX_KEPT = 100_000
"""About ten megabytes."""

CHANNELS_AT_ONCE = 5_000
"""Channels of one request: Redis answers no other meanwhile."""

MAX_ACTIVE = 1_000
"""Channels of the last seconds that are returned, those with the newest messages."""

POSTS_KEPT_SECONDS = 600
BUSY_MINUTES = 3
"""The current minute and those before it whose posts are compared: a check each minute misses none."""

MAX_BUSY = 1_000
"""Channels of a minute that are returned as busy, those with the most posts first."""

SLOT_MINUTES = 5
SLOTS = 12
"""Numbers of posts of the last hour that pages show: twelve, of five minutes each."""

SLOT_KEPT_SECONDS = (SLOTS + 1) * SLOT_MINUTES * 60

REMOVAL_KEPT_SECONDS = 24 * 60 * 60

_COUNT = """
for i = 3, #ARGV, 2 do
    redis.call('ZINCRBY', KEYS[1], ARGV[i + 1], ARGV[i])
    redis.call('ZINCRBY', KEYS[2], ARGV[i + 1], ARGV[i])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[2])
"""

_LATEST = "return {redis.call('ZSCORE', KEYS[1], ARGV[1]), redis.call('GET', KEYS[2])}"

_NOTE_REMOVALS = """
for i = 1, #KEYS do
    redis.call('SET', KEYS[i], ARGV[1], 'EX', ARGV[2])
end
"""


class Latest(NamedTuple):
    """What is known of a channel without reading it. posted: changes with each post, about a second later.

    removed: changes, as soon, when a purge has deleted messages or an undo restored them. None: unknown, or long ago.
    """

    posted: str | None
    removed: str | None


class _Process:
    """This process's channels that were not sent yet, with the last post's time and the number of posts by minute, and
    those with removals; reset after a fork.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.posted_at: dict[int, float] = {}
        self.posts: dict[int, Counter[int]] = {}
        self.removed: set[int] = set()


_process = _Process()
os.register_at_fork(after_in_child=_process.__init__)  # type: ignore[misc]


def note_post(channel_id: int) -> None:
    """Record that a message was posted in the channel, without delaying the post."""
    now = time.time()
    with _process.lock:
        _process.posted_at[channel_id] = now
        _process.posts.setdefault(int(now // 60), Counter())[channel_id] += 1
    _sender.notify()


def note_removals(channel_ids: Iterable[int]) -> None:
    """Record that a purge deleted messages of the channels, or restored some, without delaying it."""
    with _process.lock:
        _process.removed.update(channel_ids)
    _sender.notify()


def last_active_channels(limit: int) -> list[int]:
    """Return the channels with the newest messages, newest first. Raises `StoreUnavailable`."""
    return [int(str(channel_id)) for channel_id in redis_client().zrevrange(KEY, 0, limit - 1)]


def order_by_last_post(channel_ids: Sequence[int]) -> list[int]:
    """Return those of the channels of which a post is recorded, newest first. Raises `StoreUnavailable`."""
    posted_at: dict[int, float] = {}
    for start in range(0, len(channel_ids), CHANNELS_AT_ONCE):
        some = channel_ids[start : start + CHANNELS_AT_ONCE]
        times = redis_client().zmscore(KEY, [str(channel_id) for channel_id in some])
        posted_at |= {channel_id: at for channel_id, at in zip(some, times, strict=True) if at is not None}
    return sorted(posted_at, key=lambda channel_id: (-posted_at[channel_id], channel_id))


def channels_active_within(seconds: float) -> list[int]:
    """Return the channels with messages of the last seconds, newest first, at most `MAX_ACTIVE`.

    Raises `StoreUnavailable`.
    """
    since = time.time() - seconds
    found = redis_client().zrevrangebyscore(KEY, "+inf", since, 0, MAX_ACTIVE)
    return [int(str(channel_id)) for channel_id in found]


def latest_of(channel_id: int) -> Latest:
    """Return what has changed last in the channel, in one request. Raises `StoreUnavailable`."""
    keys = (KEY, _removal_key(channel_id))
    return Latest(*cast("list[str | None]", redis_client().eval(_LATEST, 2, *keys, str(channel_id))))


def busy_channels(least: int) -> dict[int, int]:
    """Return the channels with at least this many posts in one of the last minutes, with the largest of these numbers.

    The posts of imports are not counted. Raises `StoreUnavailable`.
    """
    minute = int(time.time() // 60)
    busy: dict[int, int] = {}
    for number in range(minute - BUSY_MINUTES + 1, minute + 1):
        found = redis_client().zrevrangebyscore(_posts_key(number), "+inf", least, 0, MAX_BUSY, withscores=True)
        for name, posts in cast("list[tuple[str, float]]", found):
            busy[int(name)] = max(busy.get(int(name), 0), int(posts))
    return busy


def posts_of_hour(channel_ids: Collection[int]) -> dict[int, tuple[int, ...]]:
    """Return the posts of the last hour in those of the channels that had any, in `SLOTS` parts, oldest first.

    The newest part has begun only. The posts of imports are not counted. Raises `StoreUnavailable`.
    """
    ids = list(channel_ids)
    if not ids:
        return {}
    slot = int(time.time() // (SLOT_MINUTES * 60))
    with redis_client().pipeline(transaction=False) as pipeline:
        for number in range(slot - SLOTS + 1, slot + 1):
            pipeline.zmscore(_slot_key(number), [str(channel_id) for channel_id in ids])
        columns = zip(*pipeline.execute(), strict=True)
    return {
        channel_id: tuple(int(posts or 0) for posts in column)
        for channel_id, column in zip(ids, columns, strict=True)
        if any(column)
    }


def _posts_key(minute: int) -> str:
    return f"posts:{minute}"


def _removal_key(channel_id: int) -> str:
    return f"removal:{channel_id}"


def _slot_key(slot: int) -> str:
    return f"posts_of_slot:{slot}"


def _send() -> None:
    """Send this process's channels; those of a failed request are lost and return with their next messages."""
    with _process.lock:
        posted_at, _process.posted_at = _process.posted_at, {}
        posts, _process.posts = _process.posts, {}
        removed, _process.removed = _process.removed, set()
    client = redis_client()
    if removed:
        removal_keys = [_removal_key(channel_id) for channel_id in removed]
        client.eval(_NOTE_REMOVALS, len(removal_keys), *removal_keys, str(time.time_ns()), str(REMOVAL_KEPT_SECONDS))
    if posted_at:
        client.zadd(KEY, {str(channel_id): at for channel_id, at in posted_at.items()}, gt=True)
        client.zremrangebyrank(KEY, 0, -MAX_KEPT - 1)
        for minute, counts in posts.items():
            pairs = [str(value) for pair in counts.items() for value in pair]
            keys = (_posts_key(minute), _slot_key(minute // SLOT_MINUTES))
            client.eval(_COUNT, 2, *keys, str(POSTS_KEPT_SECONDS), str(SLOT_KEPT_SECONDS), *pairs)


_sender = BackgroundSender(_send, name="send-activity")
