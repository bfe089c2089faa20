"""Messages of a preview that other purges have deleted since it was scanned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from django.db.models import Case, Exists, F, OuterRef, Q, Sum, When, Window

from chatstore.domain.buckets import BucketKey
from moderation.domain.packing import unpack_ids
from moderation.domain.states import ACTIVE_PURGES, PurgeState
from moderation.models import Purge, Step
from moderation.operations.steps.deleted_ids import deleted_by_others

DeletedSince = Mapping[BucketKey, set[int]]
"""Messages of a preview that other purges have deleted, by bucket."""

MAX_IDS = 500_000
"""IDs of a preview that a page compares with those of other purges: about a second."""


def count_deleted_since(purge: Purge) -> int | None:
    """Return how many messages `find_deleted_since` returns; None: too many to compare."""
    return count_found(find_deleted_since(purge))


def count_found(deleted: DeletedSince | None) -> int | None:
    """Return the number of messages that were found; None if they were too many to compare."""
    return None if deleted is None else sum(map(len, deleted.values()))


def count_by_channel(deleted: DeletedSince) -> Counter[int]:
    """Return the number of messages in each channel."""
    return _add_up((channel_id, ids) for (channel_id, _), ids in deleted.items())


def count_by_bucket(deleted: DeletedSince) -> Counter[int]:
    """Return the number of messages in each bucket, of all channels together."""
    return _add_up((bucket, ids) for (_, bucket), ids in deleted.items())


def _add_up(groups: Iterable[tuple[int, set[int]]]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for key, ids in groups:
        counts[key] += len(ids)
    return counts


def find_deleted_since(purge: Purge) -> DeletedSince | None:
    """Return the messages of a preview that other purges have deleted since its scan; None: too many to compare.

    Deletes that have begun and are not verified yet do not count, nor do messages that are live again. Empty for
    what is no preview that can be confirmed.
    """
    if purge.state != PurgeState.READY:
        return {}
    # Those that ended before the preview was requested had deleted nothing that its scan could find.
    has_worked_since = Q(state__in=ACTIVE_PURGES) | Q(finished_at__gte=purge.created_at)
    others = Purge.objects.filter(has_worked_since, confirmed_at__isnull=False, is_rewrite=False)
    deletes = Step.objects.counted_deletes().filter(
        purge_id__in=list(others.order_by().values_list("pk", flat=True)),
        channel_id=OuterRef("channel_id"),
        bucket=OuterRef("bucket"),
    )
    # Postgres reads no ids where they are too many.
    steps = purge.steps.filter(Exists(deletes)).annotate(total=Window(Sum("count")))
    rows = steps.order_by("ordinal").values_list(
        "channel_id", "bucket", "total", Case(When(total__lte=MAX_IDS, then=F("ids")))
    )
    wanted: dict[BucketKey, set[int]] = defaultdict(set)
    for channel_id, bucket, total, packed in rows:
        if total > MAX_IDS:
            return None
        wanted[channel_id, bucket].update(unpack_ids(packed))
    return deleted_by_others(purge.pk, wanted) if wanted else {}
