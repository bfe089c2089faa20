"""Copies across purges: messages of one purge that other purges have copies of, or need copies of."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, groupby

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from chatstore.domain.buckets import BucketKey
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.chunks import Row
from moderation.domain.packing import unpack_ids
from moderation.domain.restoring import newest_complete_rows
from moderation.domain.states import DELETING, WITHOUT_COPIES
from moderation.models import Purge, Step
from moderation.models.steps import StepQuerySet
from moderation.store.quarantine import (
    QuarantineKey,
    quarantine_attempts_in,
    quarantine_copies,
    quarantined_rows,
    quarantined_rows_in,
)


def copies_of(channel_id: int, bucket: int, ids: Iterable[int]) -> Iterator[list[Row]]:
    """Yield each id's newest complete copy, from any purge's quarantine."""
    for _, rows in copies_in({(channel_id, bucket): frozenset(ids)}):
        yield rows


def copies_in(wanted: Mapping[BucketKey, Collection[int]]) -> Iterator[tuple[BucketKey, list[Row]]]:
    """Yield the same for ids of several buckets, each time with the bucket, one bucket after the other."""
    wanted = {key: frozenset(ids) for key, ids in wanted.items() if ids}
    here = Step.objects.in_buckets(wanted).filter(kind__in=DELETING, read_stamp__isnull=False).order_by()
    purges = list(here.values_list("channel_id", "bucket", "purge_id").distinct())
    chunks = {
        QuarantineKey(purge_id, channel_id, bucket, attempt): count
        for (channel_id, bucket, purge_id), attempts in zip(purges, quarantine_attempts_in(purges), strict=True)
        for attempt, count in attempts.items()
    }
    keys = sorted(chunks, key=lambda key: (key.channel_id, key.bucket, -key.attempt))
    # Older attempts are rarely needed.
    older = {newest: rest for _, (newest, *rest) in groupby(keys, key=lambda key: (key.channel_id, key.bucket))}

    def rows_of(newest: QuarantineKey, rows: Iterable[list[Row]]) -> Iterator[tuple[BucketKey, list[Row]]]:
        at = newest.channel_id, newest.bucket
        attempts = chain([rows], map(quarantined_rows, older.pop(newest)))
        return ((at, rows) for rows in newest_complete_rows(attempts, wanted=wanted[at]))

    for newest, rows in quarantined_rows_in({newest: chunks[newest] for newest in older}):
        yield from rows_of(newest, rows)
    # Those whose newest copies have expired meanwhile.
    for newest in list(older):
        yield from rows_of(newest, ())


def renew_copies(
    step: Step, ids: Iterable[int], *, attempt: int, wanted_row: Callable[[Row], bool] = lambda _: True
) -> int:
    """Quarantine some messages again under a step's purge, with a full time to live from now; return their number.

    attempt: a stamp (µs) that no other attempt in the bucket has; repeated with the same stamp, it writes the same.
    wanted_row: filter for the rows. The caller's job has locked the channel. Raises `StoreUnavailable`.
    """
    copies = copies_of(step.channel_id, step.bucket, ids)
    rows = (chosen for rows in copies if (chosen := [row for row in rows if wanted_row(row)]))
    return quarantine_copies(QuarantineKey(step.purge_id, step.channel_id, step.bucket, attempt), rows)


def shared_copies(purge: Purge) -> Mapping[int, int]:
    """Return the number of a purge's messages that other purges have copies of too, by the other purge's id.

    An undo restores each message from any purge that has a copy. When a purge is undone while another purge, which
    had found the message already gone, still deletes it, the undo stores a copy with the other purge.
    """
    counts: Counter[int] = Counter()
    own_steps: dict[tuple[int, int], list[Step]] = defaultdict(list)
    for step in _counted_steps(purge.steps.all()):
        own_steps[step.channel_id, step.bucket].append(step)
    for other in _steps_with_copies(purge):
        deleted, gone = _deleted_ids(other), frozenset(unpack_ids(other.gone_ids))
        for step in own_steps[other.channel_id, other.bucket]:
            own_ids = _deleted_ids(step)
            copied = gone.intersection(own_ids, unpack_ids(step.undone_ids))
            counts[other.purge_id] += len((own_ids & deleted) | copied)
    return +counts


def _counted_steps(steps: StepQuerySet) -> StepQuerySet:
    return steps.counted_deletes().defer("sketch", "ranges", "survivors")


def _steps_with_copies(purge: Purge) -> QuerySet[Step]:
    """Return the counted steps of other purges in the same buckets that may still have copies."""
    since = postgres_now() - dt.timedelta(days=settings.QUARANTINE_DAYS + 1)
    here = _counted_steps(purge.steps.all()).filter(channel_id=OuterRef("channel_id"), bucket=OuterRef("bucket"))
    recent = Q(quarantined_at__gt=since) | Q(renewed_at__gt=since) | Q(copies_stored_at__gt=since)
    others = _counted_steps(Step.objects.all()).filter(recent, Exists(here)).exclude(purge_id=purge.pk)
    return others.exclude(purge__state__in=WITHOUT_COPIES).select_related("purge")


def _deleted_ids(step: Step) -> frozenset[int]:
    """Return the ids that a step deleted, and therefore has copies of."""
    return frozenset(unpack_ids(step.ids)).difference(unpack_ids(step.gone_ids), unpack_ids(step.failed_ids))
