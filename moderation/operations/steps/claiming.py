"""Claiming of steps by workers, of purges and of undos. Postgres is the queue; a claim is a token with a lease.

Steps are claimed together with their channels in one transaction that locks the purge's row, and are released in the
same way, so that a channel is never unlocked while a worker processes it. Every transition of a step is an update
conditional on the claimer's token: a worker that was stopped past its lease and resumes no longer matches, and its
update affects no row. Small steps are claimed and moved many at a time: one statement moves those of a group that the
worker still has, and returns them.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Case, Exists, F, OuterRef, Q, Value, When
from django.db.models.functions import Cast, Concat

from chatstore.models import ChannelLock
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.channel_lock import (
    lock_channels,
    lock_owner,
    release_channels,
    release_locks,
)
from chatstore.operations.coordination.leases import renewed
from moderation.domain.states import PurgeState, StepState, UndoStepState
from moderation.models import Purge, Step, UndoStep
from moderation.models.steps import AnyStep, StepQuerySet, UndoStepQuerySet
from moderation.operations.steps.groups import MAX_GROUP_STEPS, next_group
from moderation.operations.steps.open_steps import STEP_MODELS, STEP_ORDER, open_steps

RUNNABLE = (PurgeState.QUEUED, PurgeState.RUNNING, PurgeState.WAITING)

WORKING_STATES = (PurgeState.RUNNING, PurgeState.UNDOING)

STATE_CHECK_SECONDS = 0.5
"""Interval at which a worker checks whether it may continue. A pause must take effect within two seconds."""

IDLE_TRANSACTION_SECONDS = 5
"""Postgres ends a transaction that locks a purge or a step after this long without a statement from its worker."""

StepT = TypeVar("StepT", Step, UndoStep)

if TYPE_CHECKING:
    _AnyField = models.Field[Any, Any]


class StepLost(Exception):
    """Another worker has claimed the step, or its purge was cancelled. Nothing was changed."""


class AllChannelsLocked(Exception):
    """Steps are due, but other jobs have locked all of their channels; `str()` is one of those jobs."""


def job_of(purge_id: int) -> str:
    """Return the job name under which a purge locks channels."""
    return f"purge:{purge_id}"


def is_locked_by_others(job: str | None = None) -> Exists:
    """Return a condition for steps whose channel another job has locked. job: the steps' own; None: that of each."""
    own = Concat(Value("purge:"), Cast(OuterRef("purge_id"), models.TextField())) if job is None else Value(job)
    locks = ChannelLock.objects.filter(~Q(job=own), channel_id=OuterRef("channel_id"))
    # With a volatile function Postgres probes the locks for each step, instead of reading all of them.
    return Exists(locks.exclude(lease_until__lt=ClockTimestamp()))


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


def bump_version(purge_id: int) -> None:
    """Increase the purge's version, before its steps are counted in the same transaction.

    Before, because claims lock the purge and then its steps.
    """
    # `PurgeQuerySet.update` increases it, also when no column is named.
    Purge.objects.filter(id=purge_id).update()


def claim_steps(purge_id: int, *, token: uuid.UUID, limit: int = MAX_GROUP_STEPS) -> list[AnyStep]:
    """Claim the next due and unclaimed steps together with their channels; empty if there are none.

    Several only if all of them begin, are small and delete in the same way; each is in a bucket of its own.

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
            return []
        steps = _lock_next(due, job=job_of(purge_id), limit=limit)
        if not steps:
            return []
        state = steps[0].state_to_resume_in
        _rows_of(steps).update(state=state, token=token, lease_until=_lease_end(), wait_reason="")
        for step in steps:
            step.state, step.token = state, token
        if purge.state in (PurgeState.QUEUED, PurgeState.WAITING):
            Purge.objects.filter(id=purge_id).update(
                state=PurgeState.RUNNING,
                started_at=models.functions.Coalesce(F("started_at"), ClockTimestamp()),
                wait_reason="",
                wait_until=None,
            )
        return steps


def _lock_next(due: StepQuerySet | UndoStepQuerySet, *, job: str, limit: int) -> list[AnyStep]:
    """Return the next due steps whose channels can be locked, several only if they can be processed together.

    Raises `AllChannelsLocked` if no due step's channel can be locked.
    """
    while group := next_group(due.filter(~is_locked_by_others(job)), limit=limit):
        # All of them in one statement, in the order of their ids: two jobs never wait for each other.
        got = lock_channels({step.channel_id for step in group}, job=job)
        if keys := [step.pk for step in group if step.channel_id in got]:
            return list(due.with_keys(keys).order_by(*STEP_ORDER))
        # Other jobs have just locked all of them; the next query sees that.
    first = due.order_by(*STEP_ORDER).values_list("channel_id", flat=True).first()
    if first is not None:
        raise AllChannelsLocked(lock_owner(first) or "another job")
    return []


def _rows_of(steps: Sequence[AnyStep]) -> StepQuerySet | UndoStepQuerySet:
    return type(steps[0]).objects.with_keys([step.pk for step in steps])


def _lease_end() -> models.expressions.Combinable:
    return ClockTimestamp() + dt.timedelta(seconds=settings.PURGE_LEASE_SECONDS)


def move_step(step: AnyStep, to: StepState | UndoStepState, **stored: Any) -> None:
    """Move a claimed step, as `move_steps` does. Raises `StepLost` if it was not moved."""
    if not move_steps([step], to, **stored):
        raise StepLost(str(step))


def move_steps(
    steps: Sequence[StepT],
    to: StepState | UndoStepState,
    *,
    each: Mapping[StepT, Mapping[str, Any]] | None = None,
    **stored: Any,
) -> list[StepT]:
    """Move claimed steps of one purge to the next state and store the values that belong to it, in one statement.

    steps: all in the same state. stored: values of every step. each: a step's own values, with the same names for all.
    Returns the steps that were moved; the others were claimed by another worker. Raises `StepLost` if, up to
    *stamped*, the purge is no longer running.
    """
    if not steps:
        return []
    own = each or {}
    with brief_transaction():
        if steps[0].state in steps[0].STATES.before_stamped:
            check_still_running(steps[0])
        moved = _update_claimed(steps, own, {"state": to, **stored})
    for step in moved:
        for name, value in {"state": to, **stored, **own.get(step, {})}.items():
            setattr(step, name, value)
    return moved


def _update_claimed(
    steps: Sequence[StepT], each: Mapping[StepT, Mapping[str, Any]], stored: Mapping[str, Any]
) -> list[StepT]:
    """Update the steps that still have their token and state; return these."""
    model = type(steps[0])
    keys: list[_AnyField] = list(model._meta.pk_fields)
    own: list[_AnyField] = [_field_of(model, name) for name in each.get(steps[0], {})]
    fixed: list[tuple[_AnyField, Any]] = [(_field_of(model, name), value) for name, value in stored.items()]
    arrays: list[list[Any]] = [[step.pk[position] for step in steps] for position in range(len(keys))]
    arrays += [[field.get_db_prep_save(each[step][field.name], connection) for step in steps] for field in own]
    new = ", ".join(f"%s::{field.db_type(connection)}[]" for field in (*keys, *own))
    sets = [f"{field.column} = %s" for field, _ in fixed] + [f"{field.column} = new.{field.column}" for field in own]
    sql = (
        f"UPDATE {model._meta.db_table} AS step SET {', '.join(sets)} "
        f"FROM unnest({new}) AS new ({', '.join(str(field.column) for field in (*keys, *own))}) "
        f"WHERE {' AND '.join(f'step.{field.column} = new.{field.column}' for field in keys)} "
        f"AND step.token = %s AND step.state = %s RETURNING {', '.join(f'step.{field.column}' for field in keys)}"
    )
    values: list[Any] = [field.get_db_prep_save(value, connection) for field, value in fixed]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, *arrays, steps[0].token, steps[0].state])
        moved = set(cursor.fetchall())
    return [step for step in steps if tuple(step.pk) in moved]


def _field_of(model: type[models.Model], name: str) -> _AnyField:
    return cast("_AnyField", model._meta.get_field(name))


_WORKING: dict[type[AnyStep], PurgeState] = {Step: PurgeState.RUNNING, UndoStep: PurgeState.UNDOING}
"""State of the purge in which steps are processed: an undo stops a suspended worker that had a step of the purge."""


def check_still_running(step: AnyStep) -> None:
    """Lock the purge's row for the transaction; raise `StepLost` unless it runs, or is being undone, as the step is."""
    if lock_purge(step.purge_id).state != _WORKING[type(step)]:
        raise StepLost(f"purge {step.purge_id} is no longer running")


def check_not_stopped(step: AnyStep) -> None:
    """Check the same without locking, during a long read."""
    if not Purge.objects.filter(id=step.purge_id, state=_WORKING[type(step)]).exists():
        raise StepLost(f"purge {step.purge_id} is no longer running")


def purge_state_checker(step: AnyStep) -> Callable[[], None]:
    """Return `check_not_stopped`, limited to one call per `STATE_CHECK_SECONDS`, for loops over many small pages."""
    checked_at = time.monotonic()

    def check() -> None:
        nonlocal checked_at
        if time.monotonic() - checked_at >= STATE_CHECK_SECONDS:
            check_not_stopped(step)
            checked_at = time.monotonic()

    return check


def check_still_claimed(step: AnyStep) -> None:
    """Lock the step's row for the transaction; raise `StepLost` if another worker has claimed it."""
    if _claimed(step).select_for_update().values_list("ordinal").first() is None:
        raise StepLost(str(step))


def requeue_step(step: AnyStep, *, due_in: float, reason: str, token: uuid.UUID | None = None) -> None:
    """Release a claimed step for a retry in `due_in` seconds and store the reason for the delay.

    token: the claim's, if the step in memory may not know it: a transaction that had cleared it may have been rolled
    back. For the same reason the state is taken from the database.
    """
    wait = Value(dt.timedelta(seconds=due_in), output_field=models.DurationField())
    left = _rows_of([step]).filter(token=token or step.token).open()
    left.update(**_released(type(step)), due_at=ClockTimestamp() + wait, wait_reason=reason)


def release_claims(steps: Sequence[AnyStep], *, token: uuid.UUID, singly: bool = False) -> None:
    """Release claimed steps, in whatever state they are, so that they are claimed again at once.

    singly: each on its own.
    """
    left = _rows_of(steps).filter(token=token).open()
    left.update(**_released(type(steps[0])), **({"due_at": ClockTimestamp()} if singly else {}))


def _released(model: type[AnyStep]) -> dict[str, Any]:
    restarted = When(state__in=model.STATES.before_stamped, then=Value(model.STATES.pending))
    return {"state": Case(restarted, default=F("state")), "token": None, "lease_until": None}


def lock_claimed(steps: Sequence[StepT]) -> list[StepT]:
    """Lock the steps' rows for the transaction; return those that this worker still has, in the state that it knows."""
    if not steps:
        return []
    rows = _rows_of(steps).filter(token=steps[0].token, state=steps[0].state)
    locked = set(rows.order_by("ordinal").select_for_update().values_list("ordinal", flat=True))
    return [step for step in steps if step.ordinal in locked]


def _claimed(step: AnyStep) -> StepQuerySet | UndoStepQuerySet:
    """Return the step's row if its worker still has the claim and the step is still in the state that it knows."""
    return type(step).objects.filter(pk=step.pk, token=step.token, state=step.state)


def release_idle_channels(purge: Purge) -> None:
    """Unlock the channels in which no step of the purge is being processed or partly applied.

    The caller's transaction locks the purge's row.
    """
    busy = open_steps(purge).in_progress().order_by().values_list("channel_id", flat=True)
    release_locks(ChannelLock.objects.filter(job=job_of(purge.pk)).exclude(channel_id__in=busy))


def release_done_channels(steps: Sequence[AnyStep]) -> list[int]:
    """Unlock the channels of steps of one purge in which the purge has no more due steps; return these channels."""
    of_purge = type(steps[0]).objects.filter(purge_id=steps[0].purge_id)

    def done(channel_ids: Collection[int]) -> set[int]:
        left = of_purge.filter(channel_id__in=channel_ids).open().in_progress_or_due().order_by()
        return set(channel_ids).difference(left.values_list("channel_id", flat=True).distinct())

    released = done({step.channel_id for step in steps})
    if not released:
        return []
    with brief_transaction():
        # With the row locked no worker can claim a step there, such as one that becomes due now.
        lock_purge(steps[0].purge_id)
        released = done(released)
        release_channels(released, job=job_of(steps[0].purge_id))
    return sorted(released)


def renewed_leases(token: uuid.UUID) -> AbstractContextManager[None]:
    """Renew the leases of everything claimed under the token, from a separate thread."""
    return renewed(partial(renew_claims, token), every_seconds=settings.PURGE_LEASE_RENEW_SECONDS)


def renew_claims(token: uuid.UUID) -> None:
    """Renew the leases of the steps that are claimed under the token."""
    for model in STEP_MODELS:
        with brief_transaction():
            # Rows that the worker itself is moving are skipped: their order differs, and their claim is alive.
            rows = model.objects.claimed().filter(token=token).open().select_for_update(skip_locked=True)
            if keys := list(rows.values_list("pk", flat=True)):
                model.objects.with_keys(keys).update(lease_until=_lease_end())
