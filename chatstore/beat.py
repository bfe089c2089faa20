"""Celery's beat, which says that it lives: silent, nothing of what is due would be rung for."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django_celery_beat.schedulers import DatabaseScheduler

from chatstore.domain.errors import StoreUnavailable
from chatstore.store.heartbeats import BEAT, note_life


class Scheduler(DatabaseScheduler):  # type: ignore[misc]
    """Django's tables as before; each tick, every five seconds at least, is noted."""

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        """Seconds until the next one."""
        # With Redis away the broker's own errors say so at length.
        with suppress(StoreUnavailable):
            note_life(BEAT)
        return super().tick(*args, **kwargs)
