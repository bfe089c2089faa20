"""Purge worker: claims the steps of a purge one after the other and processes them.

Steps are pipelined across the wait for the quarantine to reach disk: while one waits, the next is read. A purge
without due steps is left *waiting* with its reason, its channels are unlocked, and beat enqueues it again; nothing
relies on the broker.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.conf import settings
from django.db import Error

from chatstore.domain.errors import StoreUnavailable, TooManyTombstones, WriteRefused
from chatstore.domain.snowflakes import ms_of
from chatstore.models import BucketStamp
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.repair_status.repair_clock import check_repaired
from moderation.domain.packing import unpack_ids
from moderation.domain.states import FINAL_STEPS, PurgeState, StepKind, StepState
from moderation.models import Purge, Step
from moderation.operations.purging.completion import seconds_until_due, settle_purge
from moderation.operations.purging.execution import fail_step, finish_step, stamp_step
from moderation.operations.purging.quarantine import STAYS_AT_MOST, Kept, PlanRejected, on_disk_at_us, quarantine_step
from moderation.operations.purging.wait_reasons import say_behind, say_wait, wait_of
from moderation.operations.steps.claiming import (
    LOOK_SECONDS,
    RUNNABLE,
    ChannelBusy,
    LostStep,
    check_may_go_on,
    claim_step,
    put_back,
    release_done_channel,
    renewed_leases,
)
from moderation.operations.undo.restore import restore_step
from moderation.store.pace import Pace

logger = logging.getLogger(__name__)

PIPELINE = 8
"""Maximum number of steps of one worker that wait for the disk at a time."""

PATIENCE_SECONDS = 15.0
"""Total time for which a worker waits for a purge that makes no progress; beat handles longer waits.

A worker that waited indefinitely could be the one that the lock owner of the channel needs.
"""

RETRY_SECONDS = 5.0
"""Delay after the store was unavailable or this process's clock was off."""

PUZZLED_RETRY_SECONDS = 60.0
"""Delay after an unexpected error: it often recurs, and each one is logged with a traceback."""


CHECK_REPAIR_SECONDS = 30.0
"""A repair becomes late after days, so it need not be checked for each step."""


@dataclass(slots=True)
class Run:
    """One worker processing one purge."""

    purge_id: int
    released: Callable[[int], None] = lambda _: None
    token: uuid.UUID = field(default_factory=uuid.uuid4)
    pace: Pace = field(default_factory=lambda: Pace(settings.PURGE_STATEMENTS_PER_SECOND / settings.PURGE_WORKERS))
    on_the_way: deque[tuple[Step, Kept]] = field(default_factory=deque)
    counted: int = 0
    obstacle: str = ""
    is_behind: bool = False
    checks_repair_at: float = 0.0


def run_purge(
    purge_id: int,
    *,
    patience_seconds: float = PATIENCE_SECONDS,
    waits_for_channel: bool = True,
    released: Callable[[int], None] = lambda _: None,
) -> Purge:
    """Process a confirmed purge until no step is due; return its current state.

    idle_timeout_seconds: total time to wait between two completed steps.
    wait_for_channel: also wait for another job's lock. A Celery worker does not, because that job may need it.
    on_release: called with each channel that is unlocked, to notify purges that wait for it.
    """
    run = Run(purge_id, released)
    waits_since = time.monotonic()
    with renewed_leases(run.token):
        while True:
            counted = run.counted
            obstacle = _work(run)
            if run.counted > counted:
                waits_since = time.monotonic()
            purge = settle_purge(purge_id, obstacle=obstacle)
            if run.is_behind and not waits_for_channel:
                return purge
            pause = seconds_until_due(purge)
            if pause is None or time.monotonic() + pause > waits_since + patience_seconds:
                return purge
            time.sleep(max(0.1, pause))


def run_beside_others(purge_id: int, *, patience_seconds: float = PATIENCE_SECONDS) -> Purge:
    """Call `run_purge` until no other worker has a lease on a step, so that a command reports the combined result."""
    run_purge(purge_id, patience_seconds=patience_seconds)
    steps = Step.objects.filter(purge=purge_id).open()
    while steps.leased().exists():
        time.sleep(LOOK_SECONDS)
        run_purge(purge_id)
    # Account for steps that other workers have completed since.
    return run_purge(purge_id, patience_seconds=0)


def run_to_its_end(purge_id: int, *, tell: Callable[[str], object]) -> Purge:
    """Call `run_with_workers` repeatedly while the purge waits for another job, a repair or the store.

    report: called with the reason for waiting, as one line, whenever it changes. Returns when only
    deferred steps are left, or when the purge was paused or cancelled.
    """
    said = ""
    while True:
        # A short timeout, so that the reason for waiting is reported soon.
        purge = run_beside_others(purge_id, patience_seconds=2)
        if not _goes_on(purge):
            return purge
        line = say_wait(wait_of(None, purge))
        if line and line != said:
            tell(line)
            said = line
        time.sleep(LOOK_SECONDS)


def _goes_on(purge: Purge) -> bool:
    """Return whether the purge has open steps besides deferred ones."""
    left = purge.steps.open().exclude(kind=StepKind.LATER, due_at__gt=ClockTimestamp())
    return purge.state in (*RUNNABLE, PurgeState.UNDOING) and left.exists()


def _work(run: Run) -> str:
    """Process all due steps; return what blocks all of them, or ""."""
    run.obstacle, run.is_behind = "", False
    try:
        while not run.obstacle and (step := claim_step(run.purge_id, token=run.token)):
            _begin(run, step)
            while run.on_the_way and (len(run.on_the_way) >= PIPELINE or _is_on_disk(run.on_the_way[0][0])):
                _end(run)
    except ChannelBusy as busy:
        run.obstacle, run.is_behind = say_behind(str(busy)), True
    finally:
        while run.on_the_way:
            _end(run)
    return run.obstacle


def _begin(run: Run, step: Step) -> None:
    with _outcomes(run, step):
        if step.kind == StepKind.UNDO:
            restore_step(step, pace=run.pace)
            run.counted += 1
            return
        if step.state != StepState.PENDING:
            _finish(run, step)
            return
        _check_repaired(run)
        wait = _seconds_until_quiet(step)
        if wait > 0:
            put_back(
                step,
                due_in=wait,
                reason="for 10 seconds without writes, so that the range delete does not affect new messages",
            )
            return
        room = STAYS_AT_MOST - sum(kept.stays.size for _, kept in run.on_the_way if kept.stays is not None)
        run.on_the_way.append((step, quarantine_step(step, pace=run.pace, room=room)))


def _end(run: Run) -> None:
    step, kept = run.on_the_way.popleft()
    with _outcomes(run, step):
        while (left := (on_disk_at_us(step) - postgres_now_us()) / 1_000_000) > 0:
            time.sleep(min(left, LOOK_SECONDS))
            check_may_go_on(step.purge_id)
            run.pace.begin()
        stamp_step(step, kept)
        _finish(run, step, kept)


def _finish(run: Run, step: Step, kept: Kept | None = None) -> None:
    finish_step(step, pace=run.pace, kept=kept)
    run.counted += 1


@contextmanager
def _outcomes(run: Run, step: Step) -> Iterator[None]:
    """Handle errors of a step. The class alone decides the result."""
    try:
        with _failing(step):
            yield
        if step.state in FINAL_STEPS and release_done_channel(step):
            run.released(step.channel_id)
    except LostStep:
        # Taken over by another worker, or the purge was cancelled: then the claim must be released.
        logger.info("lost step %s of purge %s", step.ordinal, step.purge_id)
        put_back(step, due_in=0, reason="")
    except (StoreUnavailable, TooManyTombstones) as unavailable:
        run.pace.halve()
        run.obstacle = str(unavailable)
        put_back(step, due_in=RETRY_SECONDS, reason=run.obstacle)
    except WriteRefused as refused:
        run.obstacle = str(refused)
        put_back(step, due_in=RETRY_SECONDS, reason=run.obstacle)
    except Error:
        # Postgres is unavailable or aborted the update: the step cannot be requeued, and its lease expires.
        raise
    except Exception as error:
        logger.exception("step %s of purge %s failed unexpectedly", step.ordinal, step.purge_id)
        reason = f"unexpected error ({type(error).__name__}); it was logged and is retried every minute"
        put_back(step, due_in=PUZZLED_RETRY_SECONDS, reason=reason)


@contextmanager
def _failing(step: Step) -> Iterator[None]:
    try:
        yield
    except PlanRejected as rejected:
        fail_step(step, str(rejected))


def _is_on_disk(step: Step) -> bool:
    return on_disk_at_us(step) <= postgres_now_us()


def _check_repaired(run: Run) -> None:
    """Raise `RepairIsLate`, which requeues the step like store errors do; checked twice a minute."""
    if time.monotonic() >= run.checks_repair_at:
        check_repaired()
        run.checks_repair_at = time.monotonic() + CHECK_REPAIR_SECONDS


def _seconds_until_quiet(step: Step) -> float:
    """Return the time until a range at R0 - 10 s reaches all ids of the step and no newer write."""
    if step.kind == StepKind.ROWS:
        return 0.0
    # A manual rewrite has no ids; its ranges end an hour ago.
    newest_us = [ms_of(message_id) * 1_000 for message_id in unpack_ids(step.ids)[-1:]]
    stamped = BucketStamp.objects.filter(channel_id=step.channel_id, bucket=step.bucket).first()
    quiet_from = max([*newest_us, stamped.stamp if stamped else 0])
    return (quiet_from - postgres_now_us()) / 1_000_000 + settings.CLOCK_SKEW_SECONDS
