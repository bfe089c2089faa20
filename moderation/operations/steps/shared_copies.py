"""Copies across purges: messages of one purge that other purges have copies of, or need copies of."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.chunks import Row
from moderation.domain.packing import unpack_ids
from moderation.domain.restoring import newest_whole_rows
from moderation.domain.states import KEEPS_NOTHING, REMOVING, StepState
from moderation.models import Purge, Step
from moderation.store.quarantine import Place, keep_rows, kept_attempts, kept_rows


def copies_of(channel_id: int, bucket: int, ids: Iterable[int]) -> Iterator[list[Row]]:
    """Yield each id's newest complete copy, from any purge's quarantine."""
    wanted = frozenset(ids)
    here = Step.objects.filter(channel_id=channel_id, bucket=bucket, kind__in=REMOVING, read_stamp__isnull=False)
    places = [
        Place(purge_id, channel_id, bucket, attempt)
        for purge_id in here.order_by().values_list("purge_id", flat=True).distinct()
        for attempt in kept_attempts(purge_id, channel_id, bucket)
    ]
    places.sort(key=lambda place: place.attempt, reverse=True)
    return newest_whole_rows(map(kept_rows, places), wanted=wanted.__contains__)


def keep_again(step: Step, ids: Iterable[int], *, attempt: int, among: Callable[[Row], bool] = lambda _: True) -> int:
    """Quarantine some messages again under a step's purge, with a full time to live from now; return their number.

    attempt: a stamp (µs) that no other attempt in the bucket has; repeated with the same stamp, it writes the same.
    wanted_row: filter for the rows. The caller's job has locked the channel. Raises `StoreUnavailable`.
    """
    copies = copies_of(step.channel_id, step.bucket, ids)
    rows = (chosen for rows in copies if (chosen := [row for row in rows if among(row)]))
    return keep_rows(Place(step.purge_id, step.channel_id, step.bucket, attempt), rows)


def shared_copies(purge: Purge) -> Mapping[int, int]:
    """Return the number of a purge's messages that other purges have copies of too, by the other purge's id.

    An undo restores each message from any purge that has a copy. When a purge is undone while another purge, which
    had found the message already gone, still deletes it, the undo stores a copy with the other purge.
    """
    kept: Counter[int] = Counter()
    mine: dict[tuple[int, int], list[Step]] = defaultdict(list)
    for step in _counted(purge.steps.all()):
        mine[step.channel_id, step.bucket].append(step)
    for other in _beside(purge):
        removed, gone = _removed(other), frozenset(unpack_ids(other.gone_ids))
        for step in mine[other.channel_id, other.bucket]:
            has = _removed(step)
            left = gone.intersection(has, unpack_ids(step.undone_ids))
            kept[other.purge_id] += len((has & removed) | left)
    return +kept


def _counted(steps: QuerySet[Step]) -> QuerySet[Step]:
    return steps.filter(kind__in=REMOVING, state=StepState.COUNTED).defer("sketch", "spans", "survivors")


def _beside(purge: Purge) -> QuerySet[Step]:
    """Return the counted steps of other purges in the same buckets that may still have copies."""
    since = postgres_now() - dt.timedelta(days=settings.QUARANTINE_DAYS + 1)
    here = _counted(purge.steps.all()).filter(channel_id=OuterRef("channel_id"), bucket=OuterRef("bucket"))
    recent = Q(quarantined_at__gt=since) | Q(kept_again_at__gt=since) | Q(copies_left_at__gt=since)
    others = _counted(Step.objects.all()).filter(recent, Exists(here)).exclude(purge_id=purge.pk)
    return others.exclude(purge__state__in=KEEPS_NOTHING).select_related("purge")


def _removed(step: Step) -> frozenset[int]:
    """Return the ids that a step deleted, and therefore has copies of."""
    return frozenset(unpack_ids(step.ids)).difference(unpack_ids(step.gone_ids), unpack_ids(step.failed_ids))
