"""Channels in which messages were posted last, in Redis: of 100,000 channels a page cannot query each.

Every process that posts messages sends its channels once a second, from a background thread, so that no post waits
for it. If Redis loses them, they return with the next messages.
"""

from __future__ import annotations

import os
import threading
import time

from chatstore.store.background import BackgroundSender
from chatstore.store.redis import redis_client

KEY = "active_channels"
MAX_KEPT = 1_000


class _Process:
    """This process's channels that were not sent yet, with the last post's time; reset after a fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.posted_at: dict[int, float] = {}


_process = _Process()
os.register_at_fork(after_in_child=_process.__init__)  # type: ignore[misc]


def note_post(channel_id: int) -> None:
    """Record that a message was posted in the channel, without delaying the post."""
    with _process.lock:
        _process.posted_at[channel_id] = time.time()
    _sender.notify()


def last_active_channels(limit: int) -> list[int]:
    """Return the channels with the newest messages, newest first. Raises `StoreUnavailable`."""
    return [int(str(channel_id)) for channel_id in redis_client().zrevrange(KEY, 0, limit - 1)]


def channels_active_within(seconds: float) -> set[int]:
    """Return the channels with messages of the last seconds, at most `MAX_KEPT`. Raises `StoreUnavailable`."""
    since = time.time() - seconds
    return {int(str(channel_id)) for channel_id in redis_client().zrangebyscore(KEY, since, "+inf")}


def _send() -> None:
    """Send this process's channels; those of a failed request are lost and return with their next messages."""
    with _process.lock:
        posted_at, _process.posted_at = _process.posted_at, {}
    if posted_at:
        client = redis_client()
        client.zadd(KEY, {str(channel_id): at for channel_id, at in posted_at.items()}, gt=True)
        client.zremrangebyrank(KEY, 0, -MAX_KEPT - 1)


_sender = BackgroundSender(_send, name="send-activity")
