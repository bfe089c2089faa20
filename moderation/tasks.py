"""Celery's tasks: each calls one operation. A lost task is no loss, the scheduler looks every ten seconds."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from celery.contrib.django.task import DjangoTask
from celery.result import AsyncResult
from django.db import transaction
from kombu.exceptions import OperationalError

from chatstore.celery import app
from moderation.operations import queue, running, scanning
from moderation.operations.purges import expire_previews

logger = logging.getLogger(__name__)


class Bell(DjangoTask):  # type: ignore[misc]
    """A task that only tells workers of what stands in Postgres already.

    Whoever rings has done his act, so a broker that is away is no error of his: it is
    logged, and the next look of the scheduler after its return finds what is due.
    """

    abstract = True

    def apply_async(self, *args: Any, **kwargs: Any) -> AsyncResult | None:
        """Enqueues; None, after less than a second, when the broker does not answer."""
        try:
            return super().apply_async(*args, **kwargs)
        except OperationalError as error:
            logger.warning("nobody was told of %s yet, the broker is away: %s", self.name, error)
            return None


@app.task(base=Bell)
def scan_purge(purge_id: int) -> None:
    """Scans a drafted purge."""
    scanning.scan_purge(purge_id)


@app.task(base=Bell)
def run_purge(purge_id: int) -> None:
    """Works on a confirmed purge, then tells of those that waited behind it."""
    running.run_purge(purge_id, waits_for_channel=False)
    ring_next(purge_id)


def ring(purge_id: int) -> None:
    """Calls as many workers to a purge as it can use."""
    for _ in range(queue.workers_wanted(purge_id)):
        run_purge.delay(purge_id)


def ring_next(purge_id: int) -> None:
    """A purge was worked on: whoever can go on now is told, not only at the scheduler's next look."""
    for waiting in queue.next_in_line(purge_id):
        ring(waiting)


def ring_on_commit(purge_id: int) -> None:
    """`ring`, once what was done is stored."""
    transaction.on_commit(partial(ring, purge_id))


@app.task
def look_for_due_purges() -> None:
    """Enqueues what is due or stalled: Postgres is the queue, this is the bell."""
    expire_previews()
    for purge_id in queue.due_scans():
        scan_purge.delay(purge_id)
    for purge_id in queue.due_purges():
        ring(purge_id)
