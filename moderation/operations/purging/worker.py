"""Purge worker: claims the steps of a purge, or of its undo, and processes them.

Small steps are processed in groups, by row or by range. The others are pipelined across the wait for the quarantine to
reach disk: while one waits, the next is read. If a group fails, its steps are processed one by one, so that only those
fail that cannot be processed. A purge without due steps is left *waiting* with its reason, its channels are unlocked,
and beat enqueues it again; nothing relies on the broker.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from django.conf import settings
from django.db import Error

from chatstore.domain.errors import StoreUnavailable, TooManyTombstones, WriteRefused
from chatstore.domain.snowflakes import ms_of
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import BucketStamp
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.repair_status.repair_clock import RepairIsLate, check_repaired
from moderation.domain.packing import unpack_ids
from moderation.domain.states import PurgeState, StepKind, StepState
from moderation.models import Purge, Step, UndoStep
from moderation.models.steps import LEASED, AnyStep
from moderation.operations.purging.completion import advance_purge, seconds_until_due
from moderation.operations.purging.execution import finish_steps
from moderation.operations.purging.opening import claim_or_open
from moderation.operations.purging.quarantine import (
    MAX_SURVIVOR_BYTES,
    PlanRejected,
    QuarantinedStep,
    on_disk_at_us,
    quarantine_steps,
)
from moderation.operations.purging.stamping import fail_step, stamp_steps
from moderation.operations.purging.wait_reasons import describe_blocking_job, format_wait, wait_of, waiting_for
from moderation.operations.steps.claiming import (
    RUNNABLE,
    STATE_CHECK_SECONDS,
    WORKING_STATES,
    AllChannelsLocked,
    StepLost,
    check_not_stopped,
    release_claims,
    release_done_channels,
    renewed_leases,
    requeue_step,
)
from moderation.operations.steps.open_steps import STEP_ORDER, has_open_step, open_steps
from moderation.operations.undo.restore import restore_steps
from moderation.store.active_workers import ActiveProcess
from moderation.store.pace import Pace

logger = logging.getLogger(__name__)

PIPELINE = 8
"""Maximum number of steps, or groups, of one worker that wait for the disk at a time."""

Group = dict[Step, QuarantinedStep]

IDLE_TIMEOUT_SECONDS = 15.0
"""Total time for which a worker waits for a purge that makes no progress; beat handles longer waits.

A worker that waited indefinitely could be the one that the lock owner of the channel needs.
"""

RETRY_SECONDS = 5.0
"""Delay after the store was unavailable or this process's clock was off."""

UNEXPECTED_ERROR_RETRY_SECONDS = 60.0
"""Delay after an unexpected error: it often recurs, and each one is logged with a traceback."""


WAIT_SECONDS = 0.25
"""Interval at which a waiting worker polls for other work."""

MAX_TURN_SECONDS = 5.0
"""A turn also ends while steps wait for the disk once it has lasted this long."""

REPAIR_CHECK_SECONDS = 30.0
"""A repair becomes late after days, so it need not be checked for each step."""


@cache
def pace_of_process() -> Pace:
    """Return the pace that all turns of this process share.

    With one of its own, each turn of a quarter of a second would begin with a second's burst, and at the full rate
    although the store has just timed out.
    """
    return Pace(settings.PURGE_STATEMENTS_PER_SECOND, workers=ActiveProcess().count)


@dataclass(slots=True)
class PurgeWorker:
    """One worker processing one purge."""

    purge_id: int
    on_release: Callable[[Sequence[int]], None] = lambda _: None
    ends_turn: Callable[[], bool] = lambda: False
    between_steps: Callable[[], None] = lambda: None
    token: uuid.UUID = field(default_factory=uuid.uuid4)
    pace: Pace = field(default_factory=pace_of_process)
    in_flight: deque[Group] = field(default_factory=deque)
    counted: int = 0
    blocked_by: str = ""
    waits_for_lock: bool = False
    began: bool = False
    turn_ended: bool = False
    began_at: float = field(default_factory=time.monotonic)
    checks_repair_at: float = 0.0


def run_purge(
    purge_id: int,
    *,
    idle_timeout_seconds: float = IDLE_TIMEOUT_SECONDS,
    wait_for_channel: bool = True,
    on_release: Callable[[Sequence[int]], None] = lambda _: None,
    ends_turn: Callable[[], bool] = lambda: False,
    between_steps: Callable[[], None] = lambda: None,
) -> Purge:
    """Process a confirmed purge until no step is due or its turn ends; return its current state.

    idle_timeout_seconds: total time to wait between two completed steps.
    wait_for_channel: also wait for another job's lock. A Celery worker does not, because that job may need it.
    on_release: called with channels that are unlocked, to notify purges that wait for them.
    ends_turn: called before each claim but the first; if true, what has begun is completed and the rest is left for
    another turn.
    between_steps: called after each claim, and repeatedly while steps wait for the disk or the purge for something
    else, so that the worker can process others meanwhile.
    """
    worker = PurgeWorker(purge_id, on_release, ends_turn, between_steps)
    worker.pace.begin()
    idle_since = time.monotonic()
    with renewed_leases(worker.token):
        while True:
            counted = worker.counted
            blocked_by = _run_due_steps(worker)
            if worker.turn_ended and not blocked_by and has_due_steps(purge_id):
                # It waits for nothing but its next turn.
                return Purge.objects.get(id=purge_id)
            if worker.counted > counted:
                idle_since = time.monotonic()
            purge = advance_purge(purge_id, blocked_by=blocked_by)
            if worker.turn_ended or (worker.waits_for_lock and not wait_for_channel):
                return purge
            pause = seconds_until_due(purge)
            if pause is None or time.monotonic() + pause > idle_since + idle_timeout_seconds:
                return purge
            if _leaves_in_pause(worker, seconds=max(0.1, pause)):
                return purge


def _leaves_in_pause(worker: PurgeWorker, *, seconds: float) -> bool:
    """Wait until the purge can continue; return early, with true, if the turn ends."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if worker.ends_turn():
            return True
        _process_others(worker, seconds=min(left, WAIT_SECONDS))
    return False


def _process_others(worker: PurgeWorker, *, seconds: float = 0) -> None:
    """Process other purges that wait, then pause; none of this time counts as work of the worker's own purge."""
    worker.between_steps()
    if seconds:
        time.sleep(seconds)
    worker.pace.begin()


def run_with_workers(purge_id: int, *, idle_timeout_seconds: float = IDLE_TIMEOUT_SECONDS) -> Purge:
    """Call `run_purge` until no other worker has a lease on a step, so that a command reports the combined result."""
    run_purge(purge_id, idle_timeout_seconds=idle_timeout_seconds)
    while Purge.objects.filter(has_open_step(LEASED), id=purge_id).exists():
        time.sleep(STATE_CHECK_SECONDS)
        run_purge(purge_id)
    # Account for steps that other workers have completed since.
    return run_purge(purge_id, idle_timeout_seconds=0)


def run_to_completion(purge_id: int, *, report: Callable[[str], object]) -> Purge:
    """Call `run_with_workers` repeatedly while the purge waits for another job, a repair or the store.

    report: called with the reason for waiting, as one line, whenever it changes. Returns when only
    deferred steps are left, or when the purge was paused or cancelled.
    """
    reported = ""
    while True:
        # A short timeout, so that the reason for waiting is reported soon.
        purge = run_with_workers(purge_id, idle_timeout_seconds=2)
        if not _has_runnable_steps(purge):
            return purge
        line = format_wait(wait_of(None, purge))
        if line and line != reported:
            report(line)
            reported = line
        time.sleep(STATE_CHECK_SECONDS)


def _has_runnable_steps(purge: Purge) -> bool:
    """Return whether the purge has open steps besides deferred ones."""
    if purge.state == PurgeState.UNDOING:
        return open_steps(purge).exists()
    left = purge.steps.open().exclude(kind=StepKind.LATER, due_at__gt=ClockTimestamp())
    return purge.state in RUNNABLE and left.exists()


def _run_due_steps(worker: PurgeWorker) -> str:
    """Process all due steps; return what blocks all of them, or ""."""
    worker.blocked_by, worker.waits_for_lock = "", False
    try:
        while not worker.blocked_by and (steps := _claim(worker)):
            _begin_steps(worker, steps)
            _process_others(worker)
            while worker.in_flight and (len(worker.in_flight) >= PIPELINE or _is_on_disk(worker.in_flight[0])):
                _end_steps(worker)
    except AllChannelsLocked as busy:
        worker.blocked_by, worker.waits_for_lock = describe_blocking_job(str(busy)), True
    finally:
        while worker.in_flight:
            _end_steps(worker)
    return worker.blocked_by


def has_due_steps(purge_id: int) -> bool:
    """Return whether the purge runs and has steps that a worker could claim at once."""
    purge = Purge.objects.get(id=purge_id)
    # In the order of the index: without one, Postgres may read all steps that were counted before.
    due = open_steps(purge).due().free().order_by(*STEP_ORDER)
    return purge.state in WORKING_STATES and due.values_list("ordinal").first() is not None


def _claim(worker: PurgeWorker) -> list[AnyStep]:
    # Each turn begins something, or two purges on a busy machine could leave the worker to each other forever. What
    # waits for the disk has to be completed first, so as many steps as possible wait together.
    if worker.began and (not worker.in_flight or time.monotonic() - worker.began_at > MAX_TURN_SECONDS):
        worker.turn_ended = worker.ends_turn()
    if worker.turn_ended:
        return []
    worker.began = True
    return claim_or_open(worker.purge_id, token=worker.token)


def _begin_steps(worker: PurgeWorker, steps: Sequence[AnyStep]) -> None:
    with _handling_errors(worker, steps):
        undo_steps = [step for step in steps if isinstance(step, UndoStep)]
        if undo_steps:
            restored = restore_steps(undo_steps, pace=worker.pace)
            worker.counted += len(restored)
            _release_lost(worker, undo_steps, restored)
            return
        own = [step for step in steps if isinstance(step, Step)]
        first = own[0]
        if first.state != StepState.PENDING:
            _finish_steps(worker, own)
            return
        _check_repaired(worker)
        for step, wait in _seconds_until_quiet(own).items():
            own.remove(step)
            requeue_step(
                step,
                due_in=wait,
                reason=_(
                    "Waiting for 10 seconds without writes, so that the range delete does not affect new messages"
                ),
            )
        if not own:
            return
        quarantined = quarantine_steps(own, pace=worker.pace, max_bytes=MAX_SURVIVOR_BYTES - _buffered_bytes(worker))
        _release_lost(worker, own, quarantined)
        if quarantined:
            worker.in_flight.append(quarantined)


def _buffered_bytes(worker: PurgeWorker) -> int:
    quarantined = chain.from_iterable(group.values() for group in worker.in_flight)
    return sum(step.survivor_rows.size for step in quarantined if step.survivor_rows is not None)


def _end_steps(worker: PurgeWorker) -> None:
    group = worker.in_flight.popleft()
    steps = list(group)
    with _handling_errors(worker, steps):
        while (left := (_on_disk_at_us(group) - postgres_now_us()) / 1_000_000) > 0:
            _process_others(worker, seconds=min(left, WAIT_SECONDS))
            check_not_stopped(steps[0])
        stamped = stamp_steps(group)
        _release_lost(worker, steps, stamped)
        _finish_steps(worker, [step for step in stamped if step.state == StepState.STAMPED], group)


def _finish_steps(worker: PurgeWorker, steps: Sequence[Step], quarantined: Group | None = None) -> None:
    if steps:
        counted = finish_steps(steps, pace=worker.pace, quarantined=quarantined)
        worker.counted += len(counted)
        _release_lost(worker, steps, counted)


def _release_lost(worker: PurgeWorker, steps: Sequence[AnyStep], kept: Collection[AnyStep]) -> None:
    """Release the claims of steps that cannot continue: taken over by another worker, or a hold was placed."""
    ordinals = {step.ordinal for step in kept}
    lost = [step for step in steps if step.ordinal not in ordinals]
    if lost:
        logger.info("lost %s and %s more", lost[0], len(lost) - 1)
        release_claims(lost, token=worker.token)


@contextmanager
def _handling_errors(worker: PurgeWorker, steps: Sequence[AnyStep]) -> Iterator[None]:
    """Handle errors of steps. The class alone decides the result. Of a group, each step is tried on its own."""
    try:
        with _failing_if_rejected(steps):
            yield
        ended = [step for step in steps if step.state in step.STATES.final]
        if ended and (released := release_done_channels(ended)):
            worker.on_release(released)
    except Error:
        # Postgres is unavailable or aborted the update: the steps cannot be requeued, and their leases expire.
        raise
    except StepLost:
        # Taken over by another worker, or the purge was cancelled: then the claims must be released.
        logger.info("lost %s and %s more", steps[0], len(steps) - 1)
        release_claims(steps, token=worker.token)
    except (PlanRejected, StoreUnavailable, TooManyTombstones, WriteRefused) as error:
        if len(steps) > 1 and isinstance(error, PlanRejected):
            _process_singly(worker, steps)
            return
        # Neither a wrong clock nor a late repair is a matter of load.
        if not isinstance(error, RepairIsLate | WriteRefused):
            worker.pace.halve()
        worker.blocked_by = waiting_for(error)
        if len(steps) > 1:
            # A late repair or a wrong clock concerns every step; anything else may concern one of them.
            release_claims(steps, token=worker.token, singly=not isinstance(error, RepairIsLate | WriteRefused))
            return
        requeue_step(steps[0], due_in=RETRY_SECONDS, reason=worker.blocked_by, token=worker.token)
    except Exception as error:
        logger.exception("%s failed unexpectedly", steps[0])
        if len(steps) > 1:
            _process_singly(worker, steps)
            return
        reason = _(
            "Waiting: unexpected error (%(error)s); it was logged and is retried every minute",
            error=type(error).__name__,
        )
        requeue_step(steps[0], due_in=UNEXPECTED_ERROR_RETRY_SECONDS, reason=reason, token=worker.token)


def _process_singly(worker: PurgeWorker, steps: Sequence[AnyStep]) -> None:
    logger.info("%s and %s more are processed one by one", steps[0], len(steps) - 1)
    release_claims(steps, token=worker.token, singly=True)


@contextmanager
def _failing_if_rejected(steps: Sequence[AnyStep]) -> Iterator[None]:
    try:
        yield
    except PlanRejected as rejected:
        # Only plans of purges are rejected: the step of an undo never fails as a whole.
        if len(steps) > 1 or not isinstance(steps[0], Step):
            raise
        fail_step(steps[0], rejected.text)


def _is_on_disk(group: Group) -> bool:
    return _on_disk_at_us(group) <= postgres_now_us()


def _on_disk_at_us(group: Group) -> int:
    return max(map(on_disk_at_us, group))


def _check_repaired(worker: PurgeWorker) -> None:
    """Raise `RepairIsLate`, which requeues the step like store errors do; checked twice a minute."""
    if time.monotonic() >= worker.checks_repair_at:
        check_repaired()
        worker.checks_repair_at = time.monotonic() + REPAIR_CHECK_SECONDS


def _seconds_until_quiet(steps: Sequence[Step]) -> dict[Step, float]:
    """Return the time until a range at R0 - 10 s reaches all ids of a step and no newer write; without those it has."""
    by_range = [step for step in steps if step.kind != StepKind.ROWS]
    if not by_range:
        return {}
    stamped = BucketStamp.objects.filter(pk__in=[(step.channel_id, step.bucket) for step in by_range])
    stamps = {(row.channel_id, row.bucket): row.stamp for row in stamped}
    now_us = postgres_now_us()
    waits = {}
    for step in by_range:
        # A manual rewrite has no ids; its ranges end an hour ago.
        newest_us = [ms_of(message_id) * 1_000 for message_id in unpack_ids(step.ids)[-1:]]
        quiet_from = max([*newest_us, stamps.get((step.channel_id, step.bucket), 0)])
        waits[step] = (quiet_from - now_us) / 1_000_000 + settings.CLOCK_SKEW_SECONDS
    return {step: wait for step, wait in waits.items() if wait > 0}
