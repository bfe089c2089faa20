"""Channels that a member of staff opened lately. Kept in Redis: if it loses them, the list begins again."""

from __future__ import annotations

import time

from chatstore.store.redis import redis_client

MAX_VISITED = 40
"""More than are listed beside a page, because some of them are pinned, or may not be opened any more."""

KEPT_SECONDS = 30 * 86_400


def visited_channels(user_id: int) -> list[int]:
    """Return the channels opened lately, the latest first. Raises `StoreUnavailable`."""
    return [int(str(found)) for found in redis_client().zrevrange(_key(user_id), 0, -1)]


def visit_channel(user_id: int, channel_id: int) -> list[int]:
    """Record that a channel was opened; return the channels opened lately, the latest first.

    Raises `StoreUnavailable`.
    """
    key = _key(user_id)
    with redis_client().pipeline() as pipeline:
        pipeline.zadd(key, {str(channel_id): time.time()})
        pipeline.zremrangebyrank(key, 0, -MAX_VISITED - 1)
        pipeline.expire(key, KEPT_SECONDS)
        pipeline.zrevrange(key, 0, -1)
        return [int(str(found)) for found in pipeline.execute()[-1]]


def _key(user_id: int) -> str:
    return f"visited_channels:{user_id}"
