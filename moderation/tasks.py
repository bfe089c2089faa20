"""Celery tasks; each calls one operation.

Losing a task is harmless: beat polls Postgres for due work every ten seconds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from django.conf import settings
from django.db import transaction

from chatstore.celery import app
from chatstore.tasks import WakeupTask
from moderation.operations.access.audit_chain import link_entries
from moderation.operations.erasure import execution
from moderation.operations.preview import scan
from moderation.operations.purging import scheduling, turns, worker
from moderation.operations.purging.approvals import expire_approvals
from moderation.operations.purging.lifecycle import expire_previews
from moderation.operations.raids.detection import recheck_purged_raids
from moderation.store import active_workers

INVITATION_SECONDS = 1.0
"""Interval at which a worker checks whether its purge could use another one."""

MAX_DEPTH = 3
"""Maximum number of small purges that a worker has begun between steps of others, and that wait for the disk."""


@app.task(base=WakeupTask)
def scan_purge(purge_id: int) -> None:
    """Give a turn to the scan that comes next, which is that of `purge_id` if no other one waits."""
    _run_scan_turn(turns.take_scan_turn() or turns.begin_turn(purge_id))


@app.task(base=WakeupTask)
def join_scan() -> None:
    """Give a turn to the scan that comes next; if none waits, join a running one."""
    active_workers.clear_join(is_scan=True)
    purge_id = turns.take_scan_turn() or turns.join_scan_turn()
    if purge_id is not None:
        _run_scan_turn(purge_id)


def _run_scan_turn(purge_id: int) -> None:
    """Scan for a turn. As long as parts are free, invite idle workers to share the scan."""
    turn = turns.Turn(purge_id)
    invitation = Invitation(purge_id, is_scan=True)

    def ends_turn() -> bool:
        if not turn.ends():
            invitation.renew()
        return turn.has_ended

    scan.scan_purge(purge_id, ends_turn=ends_turn, on_shared=invite_scan_worker)
    if turn.has_ended and scheduling.is_scan_due(purge_id):
        # While another worker scans, the scan waits for no turn.
        enqueue_scan(purge_id)


@app.task(base=WakeupTask)
def run_purge(purge_id: int) -> None:
    """Give a turn to the confirmed purge that comes next, which is `purge_id` if no other one waits."""
    _run_turn(turns.take_turn() or turns.begin_turn(purge_id))


@app.task(base=WakeupTask)
def join_purge() -> None:
    """Give a turn to the purge that comes next; if none waits, join a running one."""
    active_workers.clear_join()
    purge_id = turns.take_turn() or turns.join_turn()
    if purge_id is not None:
        _run_turn(purge_id)


def _run_turn(purge_id: int, *, depth: int = 0) -> None:
    """Process a purge for a turn; enqueue the purges that waited for its channels, as each is released.

    depth: number of purges between whose steps this one is processed.
    """
    turn = turns.Turn(purge_id, is_between_steps=depth > 0)
    invitation = Invitation(purge_id)

    def between_steps() -> None:
        invitation.renew()
        _run_small_purge(depth=depth + 1)

    worker.run_purge(
        purge_id,
        idle_timeout_seconds=0 if depth else worker.IDLE_TIMEOUT_SECONDS,
        wait_for_channel=False,
        on_release=partial(enqueue_in_channels, purge_id),
        ends_turn=turn.ends,
        between_steps=between_steps,
    )
    if not turn.has_ended or not worker.has_due_steps(purge_id):
        enqueue_next(purge_id)
        recheck_purged_raids(purge_id)
    elif not scheduling.has_worker(purge_id):
        # While another worker processes the purge, it waits for no turn.
        enqueue_workers(purge_id)


def _run_small_purge(*, depth: int) -> None:
    """Give a turn to a small purge that waits, if there is one, while a worker is between steps of another purge."""
    if depth <= MAX_DEPTH and (purge_id := turns.take_turn(ranks=(turns.SMALL,))) is not None:
        _run_turn(purge_id, depth=depth)


@app.task(base=WakeupTask)
def erase_purge(purge_id: int) -> None:
    """Delete the copies of a purge, after its erasure was approved."""
    execution.erase_purge(purge_id)
    enqueue_next(purge_id)


def enqueue_workers(purge_id: int) -> None:
    """Enqueue a worker for a purge, unless one is enqueued already. Idle workers join it (`Invitation`)."""
    _enqueue(run_purge, purge_id)


def enqueue_scan(purge_id: int) -> None:
    """Enqueue a worker for a scan, unless one is enqueued already."""
    _enqueue(scan_purge, purge_id)


def _enqueue(task: WakeupTask, purge_id: int) -> None:
    if scheduling.reserve_wakeup(purge_id) and task.delay(purge_id) is None:
        # The broker is unavailable. Clear the reservation, so that the next poll enqueues the purge.
        scheduling.clear_wakeup(purge_id)


@dataclass(slots=True)
class Invitation:
    """Invitation of an idle worker to a purge or a scan, while steps are due or parts are listed that no worker has.

    One task is enqueued at a time, whatever the number of purges or of scans: the worker that receives it chooses
    among them, and invites the next one.
    """

    purge_id: int
    is_scan: bool = False
    _checked_at: float = -INVITATION_SECONDS

    def renew(self) -> None:
        """Enqueue the task if the purge could use another worker; at most once a second."""
        if time.monotonic() - self._checked_at >= INVITATION_SECONDS:
            self._checked_at = time.monotonic()
            if self.is_scan and scheduling.can_scan_be_joined(self.purge_id):
                invite_scan_worker()
            elif not self.is_scan and scheduling.can_be_joined(self.purge_id):
                invite_worker()


def invite_worker() -> None:
    """Enqueue a task for an idle worker, unless one is enqueued already."""
    if active_workers.reserve_join(expires_seconds=settings.BEAT_POLL_SECONDS):
        join_purge.apply_async(expires=settings.BEAT_POLL_SECONDS)


def invite_scan_worker() -> None:
    """Enqueue a task for an idle worker to join a scan, unless one is enqueued already."""
    if active_workers.reserve_join(expires_seconds=settings.BEAT_POLL_SECONDS, is_scan=True):
        join_scan.apply_async(expires=settings.BEAT_POLL_SECONDS)


def enqueue_next(purge_id: int) -> None:
    """Enqueue the purges that a purge has unblocked, without waiting for the next poll."""
    for waiting in scheduling.unblocked_purges(purge_id):
        enqueue_workers(waiting)


def enqueue_in_channels(purge_id: int, channel_ids: Sequence[int]) -> None:
    """Enqueue the purges that wait longest for channels that a purge has released."""
    for waiting in scheduling.waiting_in_channels(channel_ids, excluding=purge_id):
        enqueue_workers(waiting)


def enqueue_scan_on_commit(purge_id: int) -> None:
    """Call `enqueue_scan` after the transaction commits."""
    transaction.on_commit(partial(enqueue_scan, purge_id))


def enqueue_on_commit(purge_id: int) -> None:
    """Call `enqueue_workers` after the transaction commits."""
    transaction.on_commit(partial(enqueue_workers, purge_id))


def enqueue_erasure_on_commit(purge_id: int) -> None:
    """Enqueue a worker for an approved erasure after the transaction commits."""
    transaction.on_commit(partial(erase_purge.delay, purge_id))


@app.task
def poll_due_purges() -> None:
    """Enqueue due and stalled work. Postgres is the queue; the task only wakes workers up."""
    for purge_id in scheduling.due_scans():
        enqueue_scan(purge_id)
    for purge_id in scheduling.due_purges():
        enqueue_workers(purge_id)
    # Also in case a purge waits whose wake-up was lost with its worker.
    if turns.does_any_purge_wait() or scheduling.joinable_purges().exists():
        invite_worker()
    if scheduling.joinable_scans().exists():
        invite_scan_worker()
    for purge_id in execution.due_erasures():
        erase_purge.delay(purge_id)
    # Last, so that nothing waits for them. An approval that ends leaves a preview that may be too old.
    expire_approvals()
    expire_previews()


@app.task
def link_audit_entries() -> None:
    """Link new entries of the audit log. One task at a time does; another one that runs beside it does nothing."""
    link_entries()
