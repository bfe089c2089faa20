"""Rows that the poll could not process, by act. Kept in Redis; if it loses them, the next poll attempts them again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from chatstore.store.redis import redis_client


@dataclass(frozen=True, slots=True)
class FailedAct:
    """attempts: that failed, in a row. next_at: time of the next one, Unix seconds."""

    attempts: int
    next_at: float


def failed_acts(act: str) -> dict[int, FailedAct]:
    """Return the rows on which an act failed, by id. Raises `StoreUnavailable`."""
    kept: Any = redis_client().hgetall(_key(act))
    found = {}
    for row_id, text in kept.items():
        attempts, _, next_at = text.partition(" ")
        found[int(row_id)] = FailedAct(int(attempts), float(next_at))
    return found


def record_failed_act(act: str, row_id: int, failed: FailedAct) -> None:
    """Record that an act failed on a row. Raises `StoreUnavailable`."""
    redis_client().hset(_key(act), str(row_id), f"{failed.attempts} {failed.next_at}")


def forget_failed_acts(act: str, row_ids: Collection[int]) -> None:
    """Forget rows that need the act no more. Raises `StoreUnavailable`."""
    if row_ids:
        redis_client().hdel(_key(act), *map(str, row_ids))


def _key(act: str) -> str:
    return f"failed_acts:{act}"
