"""Ids that purges deleted and that were not restored. An import must not restore them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import BigIntegerField, Count, F, QuerySet, Sum, Window
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from chatstore.domain.buckets import BucketKey
from moderation.domain.packing import unpack_ids
from moderation.domain.states import DELETING, StepState
from moderation.models import Step

PackedIds = bytes | memoryview | None


@dataclass(frozen=True, slots=True)
class DeletedCounts:
    """Messages that counted steps deleted or found gone. left: those that are still deleted; undone: the others."""

    left: int
    undone: int


# Little-endian; a bucket has less than 2³¹ messages.
_UNDONE_COUNT = RawSQL(  # noqa: S611  no parameters
    " + ".join(f"(get_byte(substring(undone_ids, 1, 4), {n})::bigint << {8 * n})" for n in range(4)),
    (),
    output_field=BigIntegerField(),
)
_LEFT = F("deleted") + F("already_gone") - Coalesce(_UNDONE_COUNT, 0)


def deleted_ids(channel_id: int, bucket: int) -> set[int]:
    """Return the ids of a bucket that counted steps of any purge deleted or found gone, without restored ones."""
    steps = Step.objects.filter(channel_id=channel_id, bucket=bucket, state=StepState.COUNTED)
    return _deleted_by(steps)


def deleted_by_others(
    purge_id: int, wanted: Mapping[BucketKey, set[int]], *, among: Collection[int] | None = None
) -> Mapping[BucketKey, set[int]]:
    """Return those of the ids that other purges deleted, by bucket; empty where these deleted only other ids.

    among: IDs of the purges to compare with; None: all.
    """
    steps = Step.objects.in_buckets(wanted).counted_deletes()
    if among is not None:
        steps = steps.filter(purge_id__in=among)
    deleted: dict[BucketKey, set[int]] = defaultdict(set)
    named = ("channel_id", "bucket", "ids", "failed_ids", "undone_ids")
    others = steps.exclude(purge_id=purge_id).order_by()
    for channel_id, bucket, *packed in others.values_list(*named).iterator(chunk_size=100):
        if found := _unpack_deleted(*packed):
            deleted[channel_id, bucket] |= wanted[channel_id, bucket] & found
    return deleted


def deleted_by_step(step: Step) -> set[int]:
    """Return the ids that a counted step deleted or found gone, without restored ones."""
    return _unpack_deleted(step.ids, step.failed_ids, step.undone_ids)


def count_deleted(steps: QuerySet[Step]) -> dict[int, DeletedCounts]:
    """Return the number of such ids in counted deleting steps, by channel, as added up by Postgres.

    Channels in which none was deleted are left out.
    """
    by_channel = steps.order_by().values("channel_id").annotate(left=Sum(_LEFT))
    deleted = by_channel.annotate(ever=Sum(F("deleted") + F("already_gone"))).filter(ever__gt=0)
    rows = deleted.values_list("channel_id", "left", "ever")
    return {channel_id: DeletedCounts(left, ever - left) for channel_id, left, ever in rows}


def sum_deleted(steps: QuerySet[Step]) -> int:
    """Return the number of such ids in counted deleting steps, as added up by Postgres."""
    return int(steps.order_by().aggregate(left=Sum(_LEFT, default=0))["left"])


def is_any_deleted(steps: QuerySet[Step]) -> bool:
    """Return whether there are such ids in counted deleting steps, as counted by Postgres."""
    return steps.order_by().alias(left=_LEFT).filter(left__gt=0).exists()


def largest_channels(steps: QuerySet[Step], *, limit: int) -> tuple[list[int], int]:
    """Return the channels with most of such ids in counted deleting steps, and the number of all that have any."""
    by_channel = steps.order_by().values("channel_id").annotate(left=Sum(_LEFT)).filter(left__gt=0)
    counted = by_channel.annotate(channels=Window(Count("*"))).order_by("-left", "channel_id")
    rows = list(counted.values_list("channel_id", "channels")[:limit])
    return [channel_id for channel_id, _ in rows], rows[0][1] if rows else 0


def _deleted_by(steps: QuerySet[Step]) -> set[int]:
    packed = steps.filter(kind__in=DELETING).values_list("ids", "failed_ids", "undone_ids")
    return set().union(*(_unpack_deleted(*row) for row in packed))


def _unpack_deleted(ids: PackedIds, failed: PackedIds, undone: PackedIds) -> set[int]:
    return set(unpack_ids(ids)).difference(unpack_ids(failed), unpack_ids(undone))
