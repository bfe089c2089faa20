"""Celery's tasks: each calls one operation. A lost task is no loss, the scheduler looks every ten seconds."""

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
    """Scans a drafted purge."""
    scheduling.note_heard(purge_id)
    scan.scan_purge(purge_id)


@app.task(base=Bell)
def run_purge(purge_id: int) -> None:
    """Works on a confirmed purge, and tells those that waited behind it, channel by channel."""
    scheduling.note_heard(purge_id)
    worker.run_purge(purge_id, waits_for_channel=False, released=partial(ring_in_channel, purge_id))
    ring_next(purge_id)


@app.task(base=Bell)
def erase_purge(purge_id: int) -> None:
    """Deletes what a purge keeps, where two people wanted it."""
    execution.erase_purge(purge_id)
    ring_next(purge_id)


def ring(purge_id: int) -> None:
    """Calls as many workers to a purge as it can use, once."""
    _call(run_purge, purge_id, times=scheduling.take_bells(purge_id))


def ring_scan(purge_id: int) -> None:
    """Calls a worker to a scan, once."""
    _call(scan_purge, purge_id, times=min(1, scheduling.take_bells(purge_id)))


def _call(bell: Bell, purge_id: int, *, times: int) -> None:
    for _ in range(times):
        if bell.delay(purge_id) is None:
            # The broker is away: as soon as it is back somebody may call again.
            scheduling.note_heard(purge_id)
            return


def ring_next(purge_id: int) -> None:
    """A purge was worked on: whoever can go on now is told, not only at the scheduler's next look."""
    for waiting in scheduling.next_in_line(purge_id):
        ring(waiting)


def ring_in_channel(purge_id: int, channel_id: int) -> None:
    """A purge has given one channel back: whoever waits for it is told at once."""
    for waiting in scheduling.next_in_channel(channel_id, behind=purge_id):
        ring(waiting)


def ring_scan_on_commit(purge_id: int) -> None:
    """`ring_scan`, once what was done is stored."""
    transaction.on_commit(partial(ring_scan, purge_id))


def ring_on_commit(purge_id: int) -> None:
    """`ring`, once what was done is stored."""
    transaction.on_commit(partial(ring, purge_id))


def ring_erasing_on_commit(purge_id: int) -> None:
    """Calls a worker to an approved erasure, once that is stored."""
    transaction.on_commit(partial(erase_purge.delay, purge_id))


@app.task
def look_for_due_purges() -> None:
    """Enqueues what is due or stalled: Postgres is the queue, this is the bell."""
    expire_previews()
    for purge_id in scheduling.due_scans():
        ring_scan(purge_id)
    for purge_id in scheduling.due_purges():
        ring(purge_id)
    for purge_id in execution.due_erasures():
        erase_purge.delay(purge_id)
