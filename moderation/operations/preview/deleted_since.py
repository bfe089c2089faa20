"""Messages of a preview that other purges have deleted since it was scanned."""

from __future__ import annotations

from collections import defaultdict

from django.db.models import Exists, OuterRef, Q

from chatstore.domain.buckets import BucketKey
from moderation.domain.packing import unpack_ids
from moderation.domain.states import ACTIVE_PURGES, PurgeState
from moderation.models import Purge, Step
from moderation.operations.steps.deleted_ids import deleted_by_others

MAX_IDS = 500_000
"""IDs of a preview that a page compares with those of other purges: about a second."""


def count_deleted_since(purge: Purge) -> int | None:
    """Return how many messages of a preview other purges have deleted since its scan; None: too many to compare.

    Deletes that have begun and are not verified yet do not count, nor do messages that are live again. 0 for what is no
    preview that can be confirmed.
    """
    if purge.state != PurgeState.READY:
        return 0
    # Those that ended before the preview was requested had deleted nothing that its scan could find.
    has_worked_since = Q(state__in=ACTIVE_PURGES) | Q(finished_at__gte=purge.created_at)
    others = Purge.objects.filter(has_worked_since, confirmed_at__isnull=False, is_rewrite=False)
    deletes = Step.objects.counted_deletes().filter(
        purge_id__in=list(others.order_by().values_list("pk", flat=True)),
        channel_id=OuterRef("channel_id"),
        bucket=OuterRef("bucket"),
    )
    steps = purge.steps.filter(Exists(deletes)).order_by("ordinal")
    if sum(steps.values_list("count", flat=True)) > MAX_IDS:
        return None
    wanted: dict[BucketKey, set[int]] = defaultdict(set)
    for channel_id, bucket, packed in steps.values_list("channel_id", "bucket", "ids"):
        wanted[channel_id, bucket].update(unpack_ids(packed))
    if not wanted:
        return 0
    return sum(len(deleted) for deleted in deleted_by_others(purge.pk, wanted).values())
