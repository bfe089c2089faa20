"""Ids that purges deleted and that were not restored. An import must not restore them."""

from __future__ import annotations

from collections import Counter

from django.db.models import BinaryField, F, Func, QuerySet

from moderation.domain.packing import COUNT_BYTES, count_packed, unpack_ids
from moderation.domain.states import DELETING, StepState
from moderation.models import Step
from moderation.models.steps import AnyStep

PackedIds = bytes | memoryview | None


def deleted_ids(channel_id: int, bucket: int) -> set[int]:
    """Return the ids of a bucket that counted steps of any purge deleted or found gone, without restored ones."""
    steps = Step.objects.filter(channel_id=channel_id, bucket=bucket, state=StepState.COUNTED)
    return _deleted_by(steps)


def deleted_by_others(step: AnyStep) -> set[int]:
    """Return the ids of a step's bucket that other purges deleted."""
    steps = Step.objects.filter(channel_id=step.channel_id, bucket=step.bucket, state=StepState.COUNTED)
    return _deleted_by(steps.exclude(purge_id=step.purge_id))


def deleted_by_step(step: Step) -> set[int]:
    """Return the ids that a counted step deleted or found gone, without restored ones."""
    return _unpack_deleted(step.ids, step.failed_ids, step.undone_ids)


def count_deleted(steps: QuerySet[Step]) -> Counter[int]:
    """Return the number of such ids in counted deleting steps, by channel.

    Reads the counts at the head of the packed ids: a purge of 50,000 channels has as many steps.
    """
    undone_head = Func(F("undone_ids"), 1, COUNT_BYTES, function="substring", output_field=BinaryField())
    rows = steps.order_by().values_list("channel_id", "deleted", "already_gone", undone_head)
    deleted_counts: Counter[int] = Counter()
    for channel_id, deleted, gone, undone in rows.iterator():
        deleted_counts[channel_id] += deleted + gone - count_packed(undone)
    return deleted_counts


def _deleted_by(steps: QuerySet[Step]) -> set[int]:
    packed = steps.filter(kind__in=DELETING).values_list("ids", "failed_ids", "undone_ids")
    return set().union(*(_unpack_deleted(*row) for row in packed))


def _unpack_deleted(ids: PackedIds, failed: PackedIds, undone: PackedIds) -> set[int]:
    return set(unpack_ids(ids)).difference(unpack_ids(failed), unpack_ids(undone))
