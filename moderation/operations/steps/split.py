"""Some ids of a step become a step of their own, so that each id is counted in one place."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Max

from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.sketches import step_columns
from moderation.domain.states import StepKind, StepState
from moderation.models import Step


def part_step(
    step: Step, apart: Sequence[int], *, kind: StepKind = StepKind.ROWS, state: StepState = StepState.PENDING
) -> None:
    """Takes ids, ascending, out of a step into a new one, as the purge's last.

    One that is *held* is counted with it. The caller's transaction holds the purge's row.
    """
    last: int = Step.objects.filter(purge_id=step.purge_id).aggregate(last=Max("ordinal"))["last"]
    rest = sorted(frozenset(unpack_ids(step.ids)).difference(apart))
    Step.objects.create(
        purge_id=step.purge_id,
        ordinal=last + 1,
        channel_id=step.channel_id,
        bucket=step.bucket,
        kind=kind,
        state=state,
        held=len(apart) if state == StepState.HELD else 0,
        **step_columns(apart),
    )
    step.ids, step.count = pack_ids(rest), len(rest)
    Step.objects.filter(purge_id=step.purge_id, ordinal=step.ordinal).update(ids=step.ids, count=step.count)
