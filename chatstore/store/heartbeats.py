"""Signs of life in Redis, all by its own clock: when beat and the watch were last seen; which bells nobody has heard.

Nothing here is missed when it is lost: whoever lives says so again within the minute.
"""

from __future__ import annotations

from typing import Any

from chatstore.store.redis import Client, redis_client

BEAT, WATCH = "beat", "watch"

QUEUES = ("celery", "maintenance")
"""Celery's lists: purges, and maintenance."""


def note_life(name: str) -> None:
    """Raises `StoreUnavailable`."""
    client = redis_client()
    client.set(_key(name), _seconds(client))


def seconds_since(name: str) -> float | None:
    """How long ago somebody noted it last; None: never. Raises `StoreUnavailable`."""
    client = redis_client()
    noted: Any = client.get(_key(name))
    return None if noted is None else max(0.0, _seconds(client) - float(noted))


def count_bells() -> dict[str, int]:
    """How many tasks wait in each queue for a worker. Raises `StoreUnavailable`."""
    client = redis_client()
    counts: dict[str, Any] = {queue: client.llen(queue) for queue in QUEUES}
    return {queue: int(count) for queue, count in counts.items()}


def _key(name: str) -> str:
    return f"seen:{name}"


def _seconds(client: Client) -> float:
    now: Any = client.time()
    return float(now[0]) + float(now[1]) / 1_000_000
