"""Beat scheduler that records a heartbeat, so that a stopped beat is noticed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django_celery_beat.schedulers import DatabaseScheduler

from chatstore.domain.errors import StoreUnavailable
from chatstore.store.heartbeats import BEAT, record_heartbeat


class Scheduler(DatabaseScheduler):  # type: ignore[misc]
    """django-celery-beat's scheduler with a heartbeat at each tick, every five seconds at least."""

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        """Run due tasks; return the seconds until the next tick."""
        # If Redis is unavailable, the broker logs errors of its own.
        with suppress(StoreUnavailable):
            record_heartbeat(BEAT)
        return super().tick(*args, **kwargs)
