"""Runs a purge: claims its steps one after the other and takes them through their states.

Steps are pipelined over the wait for the quarantine to be on disk: while one waits, the
next is read. A purge with nothing to do now is left *waiting* with its reason, its
channels are given back, and the scheduler comes by again; nothing relies on a broker.
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
"""Steps of one worker that may wait for the disk at once."""

PATIENCE_SECONDS = 15.0
"""How long a worker waits, in all, beside a purge that gets no further; longer waits are beat's.

A worker that waited for ever could be the one that the holder of the channel needs.
"""

RETRY_SECONDS = 5.0
"""After the store was unavailable, or this process's clock was off."""

PUZZLED_RETRY_SECONDS = 60.0
"""After an error that nobody foresaw: often it comes again, and each one is logged at length."""


CHECK_REPAIR_SECONDS = 30.0
"""A repair is late after days: it need not be looked for at each step."""


@dataclass(slots=True)
class Run:
    """One worker's work on one purge."""

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
    """Works on a confirmed purge until nothing is left to do now; returns it as it stands then.

    patience_seconds: what it may wait, in all, between two steps that get to their end.
    waits_for_channel: also behind another job; a worker does not, since that job may need it.
    released: told of each channel that is given back, for those that wait for it.
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
    """`run_purge`, and until no other worker has a step of it in hand: what a command says is what came of all."""
    run_purge(purge_id, patience_seconds=patience_seconds)
    steps = Step.objects.filter(purge=purge_id).open()
    while steps.leased().exists():
        time.sleep(LOOK_SECONDS)
        run_purge(purge_id)
    # What the others have ended since is seen, and settled if they have not yet.
    return run_purge(purge_id, patience_seconds=0)


def run_to_its_end(purge_id: int, *, tell: Callable[[str], object]) -> Purge:
    """`run_beside_others`, and again while it waits for another job, a repair or the store.

    tell: is told what it waits for, as a line, whenever that is another thing. Ends when nothing is left to do
    but what waits for its hour, or when somebody has paused or cancelled it.
    """
    said = ""
    while True:
        # Not for long before it says why.
        purge = run_beside_others(purge_id, patience_seconds=2)
        if not _goes_on(purge):
            return purge
        line = say_wait(wait_of(None, purge))
        if line and line != said:
            tell(line)
            said = line
        time.sleep(LOOK_SECONDS)


def _goes_on(purge: Purge) -> bool:
    """Whether something of it will be done that need not wait for its hour."""
    left = purge.steps.open().exclude(kind=StepKind.LATER, due_at__gt=ClockTimestamp())
    return purge.state in (*RUNNABLE, PurgeState.UNDOING) and left.exists()


def _work(run: Run) -> str:
    """Takes every step that is due as far as it goes; returns what stands in the way of all, or nothing."""
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
                reason="written to in the last 10 seconds: a range must not reach what is new",
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
    """What an error means for the step is decided by its class alone."""
    try:
        with _failing(step):
            yield
        if step.state in FINAL_STEPS and release_done_channel(step):
            run.released(step.channel_id)
    except LostStep:
        # Taken over, or the purge was cancelled: then nobody may be left holding the step.
        logger.info("step %s of purge %s is no longer ours", step.ordinal, step.purge_id)
        put_back(step, due_in=0, reason="")
    except (StoreUnavailable, TooManyTombstones) as unavailable:
        run.pace.halve()
        run.obstacle = str(unavailable)
        put_back(step, due_in=RETRY_SECONDS, reason=run.obstacle)
    except WriteRefused as refused:
        run.obstacle = str(refused)
        put_back(step, due_in=RETRY_SECONDS, reason=run.obstacle)
    except Error:
        # Postgres is away or has ended the move: nothing can be put back, and the lease runs out.
        raise
    except Exception as error:
        logger.exception("step %s of purge %s stopped", step.ordinal, step.purge_id)
        reason = f"something went wrong ({type(error).__name__}); it is logged, and tried again each minute"
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
    """Raises `RepairIsLate` (which waits, as the store's own troubles do); looked at twice a minute."""
    if time.monotonic() >= run.checks_repair_at:
        check_repaired()
        run.checks_repair_at = time.monotonic() + CHECK_REPAIR_SECONDS


def _seconds_until_quiet(step: Step) -> float:
    """How long a spans step must wait before its range at R0 - 10 s reaches what it should."""
    if step.kind == StepKind.ROWS:
        return 0.0
    # One without ids, a rewrite that somebody asked for, has spans that end an hour ago.
    newest_us = [ms_of(message_id) * 1_000 for message_id in unpack_ids(step.ids)[-1:]]
    stamped = BucketStamp.objects.filter(channel_id=step.channel_id, bucket=step.bucket).first()
    quiet_from = max([*newest_us, stamped.stamp if stamped else 0])
    return (quiet_from - postgres_now_us()) / 1_000_000 + settings.CLOCK_SKEW_SECONDS
