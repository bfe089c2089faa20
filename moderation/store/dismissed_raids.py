"""Channels whose reports of raids were dismissed. Kept in Redis; if Redis loses them, a raid is reported again."""

from __future__ import annotations

from chatstore.store.redis import redis_client

DISMISSED_SECONDS = 3_600
"""Time for which a channel is not reported again."""


def record_dismissal(channel_id: int) -> None:
    """Record that the report of a raid was dismissed. Raises `StoreUnavailable`."""
    redis_client().set(_key(channel_id), "1", ex=DISMISSED_SECONDS)


def is_dismissed(channel_id: int) -> bool:
    """Return whether the report of a raid was dismissed not long ago. Raises `StoreUnavailable`."""
    return bool(redis_client().exists(_key(channel_id)))


def _key(channel_id: int) -> str:
    return f"dismissed_raid:{channel_id}"
