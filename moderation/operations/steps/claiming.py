"""Claiming of steps by workers, of purges and of undos. Postgres is the queue; a claim is a token with a lease.

A step is claimed together with its channel in one transaction that locks the purge's row, and is released in the same
way, so that a channel is never unlocked while a worker processes it. Every transition of a step is an update
conditional on the claimer's token: a worker that was stopped past its lease and resumes no longer matches, and its
update affects no row.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, overload

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import F

from chatstore.models import ChannelLock
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.channel_lock import lock_channel, lock_owner, release_channel
from chatstore.operations.coordination.leases import renewed
from moderation.domain.states import PurgeState, StepState, UndoStepState
from moderation.models import Purge, Step, UndoStep
from moderation.models.steps import AnyStep, StepQuerySet, UndoStepQuerySet
from moderation.operations.steps.open_steps import STEP_MODELS, open_steps

RUNNABLE = (PurgeState.QUEUED, PurgeState.RUNNING, PurgeState.WAITING)

WORKING_STATES = (PurgeState.RUNNING, PurgeState.UNDOING)

_STEP_ORDER = (F("due_at").asc(nulls_first=True), "ordinal")
"""Order of claims: steps that were never delayed, by ordinal, then the others by the time at which they became due.

A failing bucket, which is requeued, therefore does not delay the others. The order among steps of a purge and of an
undo never matters: only one of the two kinds is open.
"""

STATE_CHECK_SECONDS = 0.5
"""Interval at which a worker checks whether it may continue. A pause must take effect within two seconds."""

IDLE_TRANSACTION_SECONDS = 5
"""Postgres ends a transaction that locks a purge or a step after this long without a statement from its worker."""


class StepLost(Exception):
    """Another worker has claimed the step, or its purge was cancelled. Nothing was changed."""


class AllChannelsLocked(Exception):
    """Steps are due, but other jobs have locked all of their channels; `str()` is one of those jobs."""


def job_of(purge_id: int) -> str:
    """Return the job name under which a purge locks channels."""
    return f"purge:{purge_id}"


@contextmanager
def brief_transaction() -> Iterator[None]:
    """Run a transaction that Postgres ends if its worker stops responding.

    A worker that is suspended, or whose machine vanished, would otherwise keep its row locks, and no other worker
    could take over its steps.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_TRANSACTION_SECONDS}s'")
        yield


def lock_purge(purge_id: int) -> Purge:
    """Return the purge with its row locked for the transaction. Rows that refer to it can still be inserted."""
    return Purge.objects.select_for_update(no_key=True).get(id=purge_id)


def claim_step(purge_id: int, *, token: uuid.UUID) -> AnyStep | None:
    """Claim the next due and unclaimed step together with its channel; return None if there is none.

    Raises `AllChannelsLocked`. A step abandoned before *stamped* starts over; one abandoned later resumes from its
    state, with the values stored at *stamped*.
    """
    with brief_transaction():
        purge = lock_purge(purge_id)
        # Don't re-claim steps that this worker still processes after its lease expired.
        due = open_steps(purge).due().free().exclude(token=token)
        if purge.state in (PurgeState.CANCELLING, PurgeState.PAUSED):
            # Stamped steps must complete, because their deletes may have been sent already.
            due = due.partly_applied()
        elif purge.state not in (*RUNNABLE, PurgeState.UNDOING):
            return None
        step = _lock_next(due, job=job_of(purge_id))
        if step is None:
            return None
        state = step.state_to_resume_in
        type(step).objects.filter(pk=step.pk).update(state=state, token=token, lease_until=_lease_end(), wait_reason="")
        step.state, step.token = state, token
        if purge.state in (PurgeState.QUEUED, PurgeState.WAITING):
            Purge.objects.filter(id=purge_id).update(
                state=PurgeState.RUNNING,
                started_at=models.functions.Coalesce(F("started_at"), ClockTimestamp()),
                wait_reason="",
                wait_until=None,
            )
        return step


def _lock_next(due: StepQuerySet | UndoStepQuerySet, *, job: str) -> AnyStep | None:
    """Return the first due step whose channel can be locked. Raises `AllChannelsLocked` if no due step's can."""
    owner = ""
    busy: list[int] = []
    while (step := due.exclude(channel_id__in=busy).order_by(*_STEP_ORDER).first()) is not None:
        if lock_channel(step.channel_id, job=job):
            return step
        busy.append(step.channel_id)
        owner = owner or lock_owner(step.channel_id) or "another job"
    if busy:
        raise AllChannelsLocked(owner)
    return None


def _lease_end() -> models.expressions.Combinable:
    return ClockTimestamp() + dt.timedelta(seconds=settings.PURGE_LEASE_SECONDS)


@overload
def move_step(step: Step, to: StepState, **stored: Any) -> None: ...
@overload
def move_step(step: UndoStep, to: UndoStepState, **stored: Any) -> None: ...
def move_step(step: AnyStep, to: StepState | UndoStepState, **stored: Any) -> None:
    """Move a claimed step to the next state and store the values that belong to it, in one write.

    Raises `StepLost`. Up to *stamped*, the purge must also still be running.
    """
    with brief_transaction():
        if step.state in step.STATES.before_stamped:
            check_still_running(step.purge_id)
        if _claimed(step).update(state=to, **stored) != 1:
            raise StepLost(str(step))
    step.state = to
    for name, value in stored.items():
        setattr(step, name, value)


def check_still_running(purge_id: int) -> None:
    """Lock the purge's row for the transaction; raise `StepLost` unless it is running or being undone."""
    if lock_purge(purge_id).state not in WORKING_STATES:
        raise StepLost(f"purge {purge_id} is no longer running")


def check_not_stopped(purge_id: int) -> None:
    """Check the purge's state without locking, during a long read; raise `StepLost` if it no longer runs."""
    if not Purge.objects.filter(id=purge_id, state__in=WORKING_STATES).exists():
        raise StepLost(f"purge {purge_id} is no longer running")


def purge_state_checker(purge_id: int) -> Callable[[], None]:
    """Return `check_not_stopped`, limited to one call per `STATE_CHECK_SECONDS`, for loops over many small pages."""
    checked_at = time.monotonic()

    def check() -> None:
        nonlocal checked_at
        if time.monotonic() - checked_at >= STATE_CHECK_SECONDS:
            check_not_stopped(purge_id)
            checked_at = time.monotonic()

    return check


def check_still_claimed(step: AnyStep) -> None:
    """Lock the step's row for the transaction; raise `StepLost` if another worker has claimed it."""
    if _claimed(step).select_for_update().values_list("ordinal").first() is None:
        raise StepLost(str(step))


def requeue_step(step: AnyStep, *, due_in: float, reason: str) -> None:
    """Release a claimed step for a retry in `due_in` seconds and store the reason for the delay."""
    wait = models.Value(dt.timedelta(seconds=due_in), output_field=models.DurationField())
    _claimed(step).update(
        state=step.state_to_resume_in,
        token=None,
        lease_until=None,
        due_at=ClockTimestamp() + wait,
        wait_reason=reason,
    )


def _claimed(step: AnyStep) -> StepQuerySet | UndoStepQuerySet:
    """Return the step's row as long as its claimer has it and nobody else has moved it."""
    return type(step).objects.filter(pk=step.pk, token=step.token, state=step.state)


def release_idle_channels(purge: Purge) -> None:
    """Unlock the channels in which no step of the purge is being processed or partly applied.

    The caller's transaction locks the purge's row.
    """
    busy = open_steps(purge).in_progress().order_by().values_list("channel_id", flat=True)
    ChannelLock.objects.filter(job=job_of(purge.pk)).exclude(channel_id__in=busy).delete()


def release_done_channel(step: AnyStep) -> bool:
    """Unlock a step's channel if the purge has no more due steps there; return whether it did."""
    here = type(step).objects.filter(purge_id=step.purge_id, channel_id=step.channel_id)
    left = here.open().in_progress_or_due().order_by()
    if left.exists():
        return False
    with brief_transaction():
        # With the row locked no worker can claim a step there, such as one that becomes due now.
        lock_purge(step.purge_id)
        if left.exists():
            return False
        release_channel(step.channel_id, job=job_of(step.purge_id))
    return True


def renewed_leases(token: uuid.UUID) -> AbstractContextManager[None]:
    """Renew the leases of everything claimed under the token, from a separate thread."""

    def renew() -> None:
        for model in STEP_MODELS:
            model.objects.filter(token=token).open().update(lease_until=_lease_end())

    return renewed(renew, every_seconds=settings.PURGE_LEASE_RENEW_SECONDS)
