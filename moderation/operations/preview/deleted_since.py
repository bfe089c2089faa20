"""Messages of a preview that other purges have deleted since it was scanned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Sum, When, Window

from chatstore.domain.buckets import BucketKey
from moderation.domain.packing import unpack_ids
from moderation.domain.states import ACTIVE_PURGES, PurgeState
from moderation.models import ManifestBucket, Purge, Step
from moderation.operations.steps.deleted_ids import deleted_by_others

DeletedSince = Mapping[BucketKey, set[int]]
"""Messages of a preview that other purges have deleted, by bucket; empty where these deleted only others."""

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


def count_by_author(purge: Purge, deleted: DeletedSince) -> Counter[int] | None:
    """Return the number of messages of each author; None if manifests do not tell it. Takes two statements.

    They do not name the author of each message. Of an author in a bucket, other purges have deleted at most what both
    the preview and they include: the numbers are these if they add up to what was deleted, or there is but one author.
    """
    counts: Counter[int] = Counter()
    touched = {key: len(ids) for key, ids in deleted.items() if ids}
    if not touched:
        return counts
    found = _authors_in(purge.manifest_buckets.all(), touched)
    others = _authors_in(ManifestBucket.objects.filter(purge__in=_deleting_since(purge)).exclude(purge=purge), touched)
    for key, total in touched.items():
        at_most = found[key] & others[key]
        if at_most.total() == total:
            counts.update(at_most)
        elif len(at_most) == 1 and at_most.total() > total:
            counts.update(dict.fromkeys(at_most, total))
        else:
            return None
    return counts


def _authors_in(buckets: QuerySet[ManifestBucket], keys: Collection[BucketKey]) -> dict[BucketKey, Counter[int]]:
    """Return the number of messages of each author by bucket, of several manifests together."""
    authors: dict[BucketKey, Counter[int]] = {key: Counter() for key in keys}
    some = buckets.filter(channel_id__in={channel_id for channel_id, _ in keys}, bucket__in={key[1] for key in keys})
    for channel_id, bucket, counts in some.values_list("channel_id", "bucket", "authors").iterator():
        if (channel_id, bucket) in authors:
            authors[channel_id, bucket].update({int(author): count for author, count in counts.items()})
    return authors


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
    other_ids = list(_deleting_since(purge).order_by().values_list("pk", flat=True))
    deletes = Step.objects.counted_deletes().filter(
        purge_id__in=other_ids,
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
    return deleted_by_others(purge.pk, wanted, among=other_ids) if wanted else {}


def _deleting_since(purge: Purge) -> QuerySet[Purge]:
    """Return the other purges that may have deleted messages since a preview was requested."""
    # Those that ended before the preview was requested had deleted nothing that its scan could find.
    is_deleting = Q(state__in=ACTIVE_PURGES - {PurgeState.UNDOING})
    # An undo deletes nothing. A purge that was paused before it has no end, not even after it.
    counted_since = Step.objects.counted_deletes().filter(purge_id=OuterRef("pk"), counted_at__gte=purge.created_at)
    was_paused = Q(state__in=(PurgeState.UNDOING, PurgeState.PARTLY_UNDONE), finished_at=None)
    was_paused_since = was_paused & Q(Exists(counted_since))
    has_worked_since = is_deleting | Q(finished_at__gte=purge.created_at) | was_paused_since
    return Purge.objects.filter(has_worked_since, confirmed_at__isnull=False, is_rewrite=False)
