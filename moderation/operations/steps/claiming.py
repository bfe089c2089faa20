"""Who works on which step. Postgres is the queue, and a claim is a token with a lease.

A step is claimed together with its channel in one transaction that holds the purge's row,
and given back the same way, so that a channel is never released under somebody's hands.
Every move of a step is an update that asks for the claimer's token: a worker that was
stopped past its lease and wakes up again finds its token gone, and moves nothing.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import F

from chatstore.models import ChannelLock
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.channel_lock import hold_channel, holder_of, release_channel
from chatstore.operations.coordination.leases import renewed
from moderation.domain.states import (
    BEFORE_STAMPED,
    BETWEEN_STAMPED_AND_COUNTED,
    PurgeState,
    StepState,
)
from moderation.models import Purge, Step
from moderation.models.purges import DUE, IN_PROGRESS, StepQuerySet

RUNNABLE = (PurgeState.QUEUED, PurgeState.RUNNING, PurgeState.WAITING)

GOING_ON = (PurgeState.RUNNING, PurgeState.UNDOING)

_TURN = (F("due_at").asc(nulls_first=True), "ordinal")

LOOK_SECONDS = 0.5
"""How often a worker looks whether it may go on: a pause is to be in effect within two seconds."""

ASLEEP_SECONDS = 5
"""How long a transaction that holds a purge or a step may hear nothing from its worker."""


class LostStep(Exception):
    """Somebody else has taken the step over, or its purge was cancelled; nothing was moved."""


class ChannelBusy(Exception):
    """Another job holds the channel; `str()` of it is that job."""


def job_of(purge_id: int) -> str:
    """The name under which a purge holds channels."""
    return f"purge:{purge_id}"


@contextmanager
def brief_transaction() -> Iterator[None]:
    """A transaction that Postgres ends when its worker falls asleep in it.

    A worker that is stopped, or whose machine has gone without a word, would otherwise keep
    the rows it locked, and nobody could take its steps over.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{ASLEEP_SECONDS}s'")
        yield


def lock_purge(purge_id: int) -> Purge:
    """The purge, its row held for the transaction; rows that refer to it may be added meanwhile."""
    return Purge.objects.select_for_update(no_key=True).get(id=purge_id)


def claim_step(purge_id: int, *, token: uuid.UUID) -> Step | None:
    """Claims the next step that is due and nobody's, with its channel; None when there is none.

    Raises `ChannelBusy`. A step that was left before *stamped* starts from the beginning;
    one that was left later goes on where it stood, with what was stored at *stamped*.
    """
    with brief_transaction():
        purge = lock_purge(purge_id)
        # A worker that slept beyond its leases still has its own steps in hand: not a second time.
        due = _due_steps(purge_id).exclude(token=token)
        if purge.state in (PurgeState.CANCELLING, PurgeState.PAUSED):
            # What was stamped goes forward to the end, since its deletes may be out already.
            due = due.filter(state__in=BETWEEN_STAMPED_AND_COUNTED)
        elif purge.state not in (*RUNNABLE, PurgeState.UNDOING):
            return None
        step = _hold_next(due, job=job_of(purge_id))
        if step is None:
            return None
        state = StepState.PENDING if step.state in BEFORE_STAMPED else step.state
        Step.objects.filter(purge_id=purge_id, ordinal=step.ordinal).update(
            state=state, token=token, lease_until=_lease_end(), wait_reason=""
        )
        step.state, step.token = state, token
        if purge.state in (PurgeState.QUEUED, PurgeState.WAITING):
            Purge.objects.filter(id=purge_id).update(
                state=PurgeState.RUNNING,
                started_at=models.functions.Coalesce(F("started_at"), ClockTimestamp()),
                wait_reason="",
                wait_until=None,
            )
        return step


def _hold_next(due: StepQuerySet, *, job: str) -> Step | None:
    """The first of the due steps whose channel can be held. Raises `ChannelBusy` when none can, although some are due.

    What was put back comes after what was never tried: one bucket in trouble holds up no other.
    """
    holder = ""
    busy: list[int] = []
    while (step := due.exclude(channel_id__in=busy).order_by(*_TURN).first()) is not None:
        if hold_channel(step.channel_id, job=job):
            return step
        busy.append(step.channel_id)
        holder = holder or holder_of(step.channel_id) or "another job"
    if busy:
        raise ChannelBusy(holder)
    return None


def _due_steps(purge_id: int) -> StepQuerySet:
    return Step.objects.open().due().free().filter(purge_id=purge_id)


def _lease_end() -> models.expressions.Combinable:
    return ClockTimestamp() + dt.timedelta(seconds=settings.PURGE_LEASE_SECONDS)


def move_step(step: Step, to: StepState, **stored: Any) -> None:
    """Moves a claimed step on and stores what belongs to the move, in one write.

    Raises `LostStep`. Up to *stamped* the purge must still be running as well.
    """
    with brief_transaction():
        if step.state in BEFORE_STAMPED:
            check_still_running(step.purge_id)
        moved = Step.objects.filter(
            purge_id=step.purge_id, ordinal=step.ordinal, token=step.token, state=step.state
        ).update(state=to, **stored)
        if moved != 1:
            raise LostStep(f"step {step.ordinal} of purge {step.purge_id}")
    step.state = to
    for name, value in stored.items():
        setattr(step, name, value)


def check_still_running(purge_id: int) -> None:
    """Holds the purge's row for the transaction; raises `LostStep` unless it runs or is being undone."""
    if lock_purge(purge_id).state not in GOING_ON:
        raise LostStep(f"purge {purge_id} no longer runs")


def check_may_go_on(purge_id: int) -> None:
    """A look without holding anything, for the middle of a long reading; raises `LostStep`."""
    if not Purge.objects.filter(id=purge_id, state__in=GOING_ON).exists():
        raise LostStep(f"purge {purge_id} no longer runs")


def watch_purge(purge_id: int) -> Callable[[], None]:
    """`check_may_go_on` for the middle of many small pages: looks at most every `LOOK_SECONDS`."""
    looked_at = time.monotonic()

    def look() -> None:
        nonlocal looked_at
        if time.monotonic() - looked_at >= LOOK_SECONDS:
            check_may_go_on(purge_id)
            looked_at = time.monotonic()

    return look


def check_still_mine(step: Step) -> None:
    """Holds the step's row for the transaction; raises `LostStep` when somebody else has claimed it."""
    mine = Step.objects.select_for_update().filter(
        purge_id=step.purge_id, ordinal=step.ordinal, token=step.token, state=step.state
    )
    if mine.values_list("ordinal").first() is None:
        raise LostStep(f"step {step.ordinal} of purge {step.purge_id}")


def put_back(step: Step, *, due_in: float, reason: str) -> None:
    """Gives a claimed step back to be tried again in `due_in` seconds; says why it waits."""
    state = StepState.PENDING if step.state in BEFORE_STAMPED else step.state
    wait = models.Value(dt.timedelta(seconds=due_in), output_field=models.DurationField())
    Step.objects.filter(purge_id=step.purge_id, ordinal=step.ordinal, token=step.token, state=step.state).update(
        state=state, token=None, lease_until=None, due_at=ClockTimestamp() + wait, wait_reason=reason
    )


def release_idle_channels(purge_id: int) -> None:
    """Gives back the channels in which no step of the purge is worked on or half done.

    The caller's transaction holds the purge's row.
    """
    busy = Step.objects.open().in_progress().filter(purge_id=purge_id).order_by()
    ChannelLock.objects.filter(job=job_of(purge_id)).exclude(channel_id__in=busy.values("channel_id")).delete()


def release_done_channel(step: Step) -> bool:
    """Gives a step's channel back when the purge has nothing more to do there now; whether it did."""
    left = Step.objects.open().filter(IN_PROGRESS | DUE, purge_id=step.purge_id, channel_id=step.channel_id).order_by()
    if left.exists():
        return False
    with brief_transaction():
        # Held, nobody claims a step there meanwhile, such as one whose hour ends now.
        lock_purge(step.purge_id)
        if left.exists():
            return False
        release_channel(step.channel_id, job=job_of(step.purge_id))
    return True


def renewed_leases(token: uuid.UUID) -> AbstractContextManager[None]:
    """Renews the leases of everything claimed under the token, from a thread of its own."""
    steps = Step.objects.filter(token=token).open()
    return renewed(lambda: steps.update(lease_until=_lease_end()), every_seconds=settings.PURGE_LEASE_RENEW_SECONDS)
