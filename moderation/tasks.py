"""Celery tasks; each calls one operation.

Losing a task is harmless: beat polls Postgres for due work every ten seconds.
"""

from __future__ import annotations

from functools import partial

from django.db import transaction

from chatstore.celery import app
from chatstore.tasks import Bell
from moderation.operations.erasure import execution
from moderation.operations.preview import scan
from moderation.operations.purging import scheduling, worker
from moderation.operations.purging.lifecycle import expire_previews


@app.task(base=Bell)
def scan_purge(purge_id: int) -> None:
    """Scan a drafted purge."""
    scheduling.note_heard(purge_id)
    scan.scan_purge(purge_id)


@app.task(base=Bell)
def run_purge(purge_id: int) -> None:
    """Process a confirmed purge; enqueue the purges that waited for its channels, as each is released."""
    scheduling.note_heard(purge_id)
    worker.run_purge(purge_id, waits_for_channel=False, released=partial(ring_in_channel, purge_id))
    ring_next(purge_id)


@app.task(base=Bell)
def erase_purge(purge_id: int) -> None:
    """Delete the copies of a purge, after its erasure was approved."""
    execution.erase_purge(purge_id)
    ring_next(purge_id)


def ring(purge_id: int) -> None:
    """Enqueue as many workers for a purge as it can use, unless workers are enqueued already."""
    _call(run_purge, purge_id, times=scheduling.take_bells(purge_id))


def ring_scan(purge_id: int) -> None:
    """Enqueue a worker for a scan, unless one is enqueued already."""
    _call(scan_purge, purge_id, times=min(1, scheduling.take_bells(purge_id)))


def _call(bell: Bell, purge_id: int, *, times: int) -> None:
    for _ in range(times):
        if bell.delay(purge_id) is None:
            # The broker is unavailable. Clear the reservation, so that the next poll enqueues the purge.
            scheduling.note_heard(purge_id)
            return


def ring_next(purge_id: int) -> None:
    """Enqueue the purges that a purge has unblocked, without waiting for the next poll."""
    for waiting in scheduling.next_in_line(purge_id):
        ring(waiting)


def ring_in_channel(purge_id: int, channel_id: int) -> None:
    """Enqueue the purge that waits longest for a channel that a purge has released."""
    for waiting in scheduling.next_in_channel(channel_id, behind=purge_id):
        ring(waiting)


def ring_scan_on_commit(purge_id: int) -> None:
    """Call `enqueue_scan` after the transaction commits."""
    transaction.on_commit(partial(ring_scan, purge_id))


def ring_on_commit(purge_id: int) -> None:
    """Call `enqueue_workers` after the transaction commits."""
    transaction.on_commit(partial(ring, purge_id))


def ring_erasing_on_commit(purge_id: int) -> None:
    """Enqueue a worker for an approved erasure after the transaction commits."""
    transaction.on_commit(partial(erase_purge.delay, purge_id))


@app.task
def look_for_due_purges() -> None:
    """Enqueue due and stalled work. Postgres is the queue; the task only wakes workers up."""
    expire_previews()
    for purge_id in scheduling.due_scans():
        ring_scan(purge_id)
    for purge_id in scheduling.due_purges():
        ring(purge_id)
    for purge_id in execution.due_erasures():
        erase_purge.delay(purge_id)
