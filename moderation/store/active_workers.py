"""Processes that execute purges now, and the tasks by which idle ones join a purge or a scan; all in Redis.

They share the limit of statements per second. The clock is that of Redis.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress

from chatstore.domain.errors import StoreUnavailable
from chatstore.store.redis import redis_client

_ACTIVE = "active_workers"
_JOIN_PURGE = "worker_invited"
_JOIN_SCAN = "scan_worker_invited"

ACTIVE_SECONDS = 5
"""A process that has not noted itself for so long is not counted: it waits, or is gone."""

RETRY_DELAY_SECONDS = 5.0
"""Pause after a failed request to Redis."""

_NOTE = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('EXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])
"""


class ActiveProcess:
    """This process among those that execute purges, from its first call of `count` on."""

    def __init__(self) -> None:
        self._name = str(uuid.uuid4())
        self._count = 1
        self._retry_at = 0.0

    def count(self) -> int:
        """Note that this process executes a purge, and return how many do; the last count without Redis."""
        if time.monotonic() >= self._retry_at:
            try:
                self._count = max(1, int(redis_client().eval(_NOTE, 1, _ACTIVE, self._name, str(ACTIVE_SECONDS))))
            except StoreUnavailable:
                self._retry_at = time.monotonic() + RETRY_DELAY_SECONDS
        return self._count


def reserve_join(*, expires_seconds: float, is_scan: bool = False) -> bool:
    """Return whether to enqueue a task for an idle worker, and reserve it; False while one is enqueued.

    is_scan: the task joins a scan, not a purge. Also False if Redis, which is the broker too, is unavailable.
    """
    try:
        return bool(redis_client().set(_key(is_scan), 1, nx=True, px=round(expires_seconds * 1_000)))
    except StoreUnavailable:
        return False


def clear_join(*, is_scan: bool = False) -> None:
    """Clear the reservation: a worker has received the task."""
    with suppress(StoreUnavailable):
        redis_client().delete(_key(is_scan))


def _key(is_scan: bool) -> str:
    return _JOIN_SCAN if is_scan else _JOIN_PURGE
