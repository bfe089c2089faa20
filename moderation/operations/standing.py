"""For which ids a purge stands: they were removed on purpose, and an import must not bring them back."""

from __future__ import annotations

from django.db.models import QuerySet

from moderation.domain.packing import unpack_ids
from moderation.domain.states import StepKind, StepState
from moderation.models import Step


def standing_ids(channel_id: int, bucket: int) -> set[int]:
    """The ids of a bucket that counted steps of any purge deleted or found gone, less the undone."""
    steps = Step.objects.filter(channel_id=channel_id, bucket=bucket, state=StepState.COUNTED)
    return _standing_of(steps)


def standing_elsewhere(step: Step) -> set[int]:
    """The ids of a step's bucket for which other purges stand."""
    steps = Step.objects.filter(channel_id=step.channel_id, bucket=step.bucket, state=StepState.COUNTED)
    return _standing_of(steps.exclude(purge_id=step.purge_id))


def _standing_of(steps: QuerySet[Step]) -> set[int]:
    standing: set[int] = set()
    removing = steps.filter(kind__in=(StepKind.ROWS, StepKind.SPANS, StepKind.LATER))
    for ids, failed, undone in removing.values_list("ids", "failed_ids", "undone_ids"):
        standing.update(set(unpack_ids(ids)).difference(unpack_ids(failed), unpack_ids(undone)))
    return standing
