"""For which ids a purge stands: they were removed on purpose, and an import must not bring them back."""

from __future__ import annotations

from moderation.domain.packing import unpack_ids
from moderation.domain.states import StepState
from moderation.models import Step


def standing_ids(channel_id: int, bucket: int) -> set[int]:
    """The ids of a bucket that counted steps of any purge deleted or found gone."""
    standing: set[int] = set()
    steps = Step.objects.filter(channel_id=channel_id, bucket=bucket, state=StepState.COUNTED)
    for ids, failed in steps.values_list("ids", "failed_ids"):
        standing.update(set(unpack_ids(ids)).difference(unpack_ids(failed)))
    return standing
