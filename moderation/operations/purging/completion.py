"""State of a purge after a worker has processed its due steps: done, waiting or cancelled."""

from __future__ import annotations

import datetime as dt
import logging
from enum import Enum, auto
from typing import Any

from django.db import transaction
from django.db.models import Max, Min
from django.db.models.functions import Coalesce

from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.ledger.summaries import CHANNELS_AT_ONCE, mark_due, note_purge
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge
from moderation.operations.access.audit import record_action, record_purged, record_restored
from moderation.operations.purging.opening import open_next_steps_of
from moderation.operations.purging.wait_reasons import WAITING_FOR_WORKER
from moderation.operations.steps.claiming import RUNNABLE, brief_transaction, lock_purge, release_idle_channels
from moderation.operations.steps.in_parts import cancel_next_steps
from moderation.operations.steps.open_steps import are_steps_open, open_steps
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import finish_undos

logger = logging.getLogger(__name__)

BLOCKED_RETRY_SECONDS = 5.0
"""Delay before a retry when the store was unavailable or another job had locked the channel."""


def advance_purge(purge_id: int, *, blocked_by: str = "") -> Purge:
    """Finish the purge if no step is open, else store what it waits for; unlock the channels that it does not need.

    blocked_by: what blocks every step, as UI text.
    """
    is_noted = False
    while (part := _advance(purge_id, blocked_by, is_noted=is_noted)) is not _Part.LAST:
        if isinstance(part, Purge):
            _note_in_channels(part)
            is_noted = True
    return Purge.objects.get(id=purge_id)


class _Part(Enum):
    """What `_advance` did: a part that others follow, or the last one."""

    FURTHER = auto()
    LAST = auto()


def _advance(purge_id: int, blocked_by: str, *, is_noted: bool) -> _Part | Purge:
    """Do a part of it, in a transaction of less than a second; or return the purge, as it was locked, before it ends.

    Only the end of a purge of 50,000 channels has several. Another worker may continue at any of them. is_noted:
    whether the table of channels has the purge. It gets it before the end, when no step is open any more, so that a
    worker that is killed in between leaves nothing undone.
    """
    with brief_transaction():
        purge = lock_purge(purge_id)
        part: _Part | Purge = _Part.LAST
        if purge.state == PurgeState.CANCELLING:
            part = _advance_cancelled(purge, is_noted=is_noted)
        elif purge.state in (*RUNNABLE, PurgeState.PAUSED, PurgeState.UNDOING):
            part = _advance_open(purge, blocked_by, is_noted=is_noted)
        if part is _Part.LAST:
            release_idle_channels(purge)
    return part


def _advance_cancelled(purge: Purge, *, is_noted: bool) -> _Part | Purge:
    if cancel_next_steps(purge):
        return _Part.FURTHER
    if purge.steps.open().exists():
        return _Part.LAST
    if not is_noted:
        return purge
    return _Part.LAST if _finish_cancelled(purge) else _Part.FURTHER


def _advance_open(purge: Purge, blocked_by: str, *, is_noted: bool) -> _Part | Purge:
    if are_steps_open(purge):
        if purge.state != PurgeState.PAUSED and not open_steps(purge).leased().exists():
            if not open_steps(purge).due().exists():
                # Without those that are to be opened, the purge would wait for the first that becomes due.
                open_next_steps_of(purge)
            _wait(purge, blocked_by)
        return _Part.LAST
    if open_next_steps_of(purge):
        return _Part.LAST
    if not is_noted:
        return purge
    return _Part.LAST if _finish(purge) else _Part.FURTHER


def seconds_until_due(purge: Purge) -> float | None:
    """Return the time until a waiting purge has a due step; None if it is not waiting."""
    if purge.state not in (PurgeState.WAITING, PurgeState.UNDOING) or purge.wait_until is None:
        return None
    return purge.wait_until.timestamp() - postgres_now_us() / 1_000_000


def _finish(purge: Purge) -> bool:
    """Finish the purge or its undos, unless entries of the audit log are left for the next transaction."""
    if purge.state == PurgeState.UNDOING:
        if not record_restored(purge):
            return False
        state = finish_undos(purge)
        Purge.objects.filter(id=purge.id).update(state=state, wait_reason="", wait_until=None)
        return True
    if purge.reopened_to is not None:
        # It was paused; once it is resumed, a worker reopens the others.
        return True
    if not record_purged(purge):
        return False
    total = totals_of(purge)
    state = PurgeState.DONE_WITH_FAILURES if total.failed or total.held else PurgeState.DONE
    Purge.objects.filter(id=purge.id).update(state=state, finished_at=ClockTimestamp(), wait_reason="", wait_until=None)
    record_action("purge_finished", actor=None, purge=purge, details=total.as_json())
    transaction.on_commit(
        lambda: logger.info(
            "purge %s %s: %s deleted, %s already gone, %s held, %s failed",
            purge.id, state, total.deleted, total.already_gone, total.held, total.failed,
        )
    )  # fmt: skip
    return True


def _wait(purge: Purge, blocked_by: str) -> None:
    now = postgres_now_us() / 1_000_000
    waiting = open_steps(purge)
    first = waiting.order_by(Coalesce("due_at", ClockTimestamp()), "ordinal").first()
    due_at = waiting.aggregate(due_at=Min(Coalesce("due_at", ClockTimestamp())))["due_at"]
    reason = blocked_by or (first.wait_reason if first else "")
    if blocked_by:
        due_at = dt.datetime.fromtimestamp(now + BLOCKED_RETRY_SECONDS, tz=dt.UTC)
    state = purge.state if purge.state == PurgeState.UNDOING else PurgeState.WAITING
    Purge.objects.filter(id=purge.id).update(state=state, wait_reason=reason or WAITING_FOR_WORKER, wait_until=due_at)


def _finish_cancelled(purge: Purge) -> bool:
    """End a cancelled purge of which no step is open, unless entries of the audit log are left."""
    if not purge.steps.filter(state=StepState.CANCELLED).exists():
        # The cancellation came too late to stop any step.
        return _finish(purge)
    if not record_purged(purge):
        return False
    Purge.objects.filter(id=purge.id).update(
        state=PurgeState.CANCELLED, finished_at=ClockTimestamp(), wait_reason="", wait_until=None
    )
    record_action("purge_cancelled", actor=None, purge=purge, details=totals_of(purge).as_json())
    return True


def _note_in_channels(purge: Purge) -> None:
    """Update the table of channels, some at a time. Rewrites and undos only change figures."""
    is_undone = purge.state == PurgeState.UNDOING
    steps: Any = purge.undo_steps.filter(undo__finished_at=None) if is_undone else purge.steps
    counted = steps.filter(counted_at__isnull=False).order_by("channel_id").values_list("channel_id")
    ended = list(counted.annotate(at=Max("counted_at")))
    for start in range(0, len(ended), CHANNELS_AT_ONCE):
        some = dict(ended[start : start + CHANNELS_AT_ONCE])
        if purge.is_rewrite or is_undone:
            mark_due(some)
        else:
            note_purge(purge.pk, some)
