"""Time for which each purge has made no progress. Kept in Redis; the clock restarts if Redis loses it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from chatstore.store.redis import redis_client

KEY = "purge_positions"


def record_positions(positions: Mapping[int, str], *, now: dt.datetime) -> dict[int, dt.datetime]:
    """Record each purge's position; return since when each has been there, by id. Other purges are dropped.

    Raises `StoreUnavailable`.
    """
    client = redis_client()
    kept: Any = client.hgetall(KEY)
    since: dict[int, dt.datetime] = {}
    for purge_id, position in positions.items():
        time, _, noted = kept.get(str(purge_id), "").partition(" ")
        since[purge_id] = dt.datetime.fromisoformat(time) if time and noted == position else now
    gone = set(kept) - {str(purge_id) for purge_id in positions}
    if gone:
        client.hdel(KEY, *gone)
    if since:
        client.hset(KEY, mapping={str(key): f"{at.isoformat()} {positions[key]}" for key, at in since.items()})
    return since
