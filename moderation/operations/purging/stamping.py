"""The stamp of steps: their deletes are stored, once, unless a hold was placed; and steps that must not run."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings

from chatstore.operations.coordination.clock import check_clock, postgres_now
from moderation.domain.packing import pack_ids
from moderation.domain.states import StepKind, StepState
from moderation.models import Step
from moderation.operations.access.audit import record_action
from moderation.operations.holds import block_new_holds, hold_coverage_of_steps
from moderation.operations.purging.quarantine import QuarantinedStep, check_columns, require_stamp
from moderation.operations.steps.claiming import (
    brief_transaction,
    check_still_running,
    lock_claimed,
    move_step,
    move_steps,
)
from moderation.operations.steps.split import split_step


def stamp_steps(quarantined: Mapping[Step, QuarantinedStep]) -> list[Step]:
    """*quarantined* → *stamped*: store the deletes in one write; they are never computed again.

    *held* if all messages of a step are held. Returns the steps that were stamped or are held; the others were lost, or
    a hold was placed since their rows were read, so that they have to start over.

    Raises what `quarantine_steps` raises: a column may have been added since the rows were read.
    """
    check_clock()
    check_columns()
    with brief_transaction():
        check_still_running(next(iter(quarantined)))
        block_new_holds()
        # Before anything is split off: what another worker has claimed must not be changed.
        steps = lock_claimed(list(quarantined))
        coverage = hold_coverage_of_steps(steps)
        known = [
            step
            for step in steps
            # A rewrite deletes no messages.
            if step.kind == StepKind.REWRITE or coverage[step.channel_id].hold_ids <= quarantined[step].hold_ids
        ]
        whole = [step for step in known if quarantined[step].held and len(quarantined[step].held) == step.count]
        for step in whole:
            _mark_held(step)
        deleting = [step for step in known if step.state != StepState.HELD]
        for step in deleting:
            if held := quarantined[step].held:
                split_step(step, held, kind=StepKind(step.kind), state=StepState.HELD)
        own = {step: _deletes_of(step, quarantined[step]) for step in deleting}
        return whole + move_steps(deleting, StepState.STAMPED, each=own)


def _deletes_of(step: Step, quarantined: QuarantinedStep) -> dict[str, object]:
    """Return the columns that store the deletes of a step, their write timestamp included.

    Ranges are deleted `CLOCK_SKEW_SECONDS` before the read, so that what was written since survives; rows at their own
    WRITETIME.
    """
    by_ranges = step.kind != StepKind.ROWS
    skew_us = settings.CLOCK_SKEW_SECONDS * 1_000_000
    return {
        "delete_stamp": require_stamp(step.read_stamp) - skew_us if by_ranges else None,
        "strategy": quarantined.plan.strategy.value,
        "ranges": [list(id_range) for id_range in quarantined.plan.ranges] if by_ranges else None,
        "survivors": pack_ids(quarantined.plan.rewritten),
        "gone_ids": pack_ids(quarantined.already_gone),
        "tombstones": quarantined.tombstones,
    }


def _mark_held(step: Step) -> None:
    """Mark the step as held: all of its messages are, and none is deleted."""
    move_step(step, StepState.HELD, held=step.count, counted_at=postgres_now(), token=None, lease_until=None)
    record_action("step_held", actor=None, purge=step.purge, channel_id=step.channel_id, details=_details(step))


def fail_step(step: Step, reason: str) -> None:
    """Fail a step before *stamped* that must not run: none of its messages was deleted."""
    with brief_transaction():
        check_still_running(step)
        move_step(
            step,
            StepState.FAILED,
            failed=step.count,
            failed_ids=step.ids,
            error=reason,
            counted_at=postgres_now(),
            token=None,
            lease_until=None,
        )
        record_action("step_failed", actor=None, purge=step.purge, channel_id=step.channel_id, details=_details(step))


def _details(step: Step) -> dict[str, object]:
    return {
        "ordinal": step.ordinal,
        "bucket": step.bucket,
        "strategy": step.strategy,
        "deleted": step.deleted,
        "already_gone": step.already_gone,
        "held": step.held,
        "failed": step.failed,
        **({"error": step.error} if step.error else {}),
    }
