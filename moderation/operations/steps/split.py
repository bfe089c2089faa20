"""Splitting of a step: some of its ids move to a new step, so that each id is counted once."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Max

from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.sketches import step_columns
from moderation.domain.states import StepKind, StepState
from moderation.models import Step


def split_step(
    step: Step, separated: Sequence[int], *, kind: StepKind = StepKind.ROWS, state: StepState = StepState.PENDING
) -> None:
    """Move ids (ascending) from a step to a new one at the end of the purge.

    A *held* step is counted immediately. The caller's transaction locks the purge's row.
    """
    last: int = Step.objects.filter(purge_id=step.purge_id).aggregate(last=Max("ordinal"))["last"]
    rest = sorted(frozenset(unpack_ids(step.ids)).difference(separated))
    Step.objects.create(
        purge_id=step.purge_id,
        ordinal=last + 1,
        channel_id=step.channel_id,
        bucket=step.bucket,
        kind=kind,
        state=state,
        held=len(separated) if state == StepState.HELD else 0,
        counted_at=postgres_now() if state == StepState.HELD else None,
        **step_columns(separated),
    )
    step.ids, step.count = pack_ids(rest), len(rest)
    Step.objects.filter(purge_id=step.purge_id, ordinal=step.ordinal).update(ids=step.ids, count=step.count)
