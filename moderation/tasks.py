"""Celery's tasks: each calls one operation. A lost task is no loss, the scheduler looks every ten seconds."""

from __future__ import annotations

from celery import shared_task

from moderation.operations import queue, running, scanning
from moderation.operations.purges import expire_previews


@shared_task
def scan_purge(purge_id: int) -> None:
    """Scans a drafted purge."""
    scanning.scan_purge(purge_id)


@shared_task
def run_purge(purge_id: int) -> None:
    """Works on a confirmed purge."""
    running.run_purge(purge_id)


@shared_task
def look_for_due_purges() -> None:
    """Enqueues what is due or stalled: Postgres is the queue, this is the bell."""
    expire_previews()
    for purge_id in queue.due_scans():
        scan_purge.delay(purge_id)
    for purge_id in queue.due_purges():
        run_purge.delay(purge_id)
