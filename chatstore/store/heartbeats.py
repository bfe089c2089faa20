"""Heartbeats of beat and the monitor, and queue depths, in Redis and by its clock.

Losing them is harmless: a running process sends a new one within the minute.
"""

from __future__ import annotations

from typing import Any

from chatstore.store.redis import Client, redis_client

BEAT, MONITOR = "beat", "monitor"

QUEUES = ("celery", "previews", "maintenance")
"""Celery's queues: purges, previews and maintenance."""


def record_heartbeat(name: str) -> None:
    """Record a heartbeat. Raises `StoreUnavailable`."""
    client = redis_client()
    client.set(_key(name), _seconds(client))


def seconds_since_heartbeat(name: str) -> float | None:
    """Return the age of the last heartbeat; None if there was none. Raises `StoreUnavailable`."""
    client = redis_client()
    noted: Any = client.get(_key(name))
    return None if noted is None else max(0.0, _seconds(client) - float(noted))


def queue_depths() -> dict[str, int]:
    """Return the number of waiting tasks per queue. Raises `StoreUnavailable`."""
    client = redis_client()
    counts: dict[str, Any] = {queue: client.llen(queue) for queue in QUEUES}
    return {queue: int(count) for queue, count in counts.items()}


def _key(name: str) -> str:
    return f"seen:{name}"


def _seconds(client: Client) -> float:
    now: Any = client.time()
    return float(now[0]) + float(now[1]) / 1_000_000
