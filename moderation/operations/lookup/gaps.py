"""Gaps that purges left between messages on a page."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from django.db.models import Prefetch, prefetch_related_objects

from chatstore.domain.buckets import bucket_ids, bucket_of
from chatstore.domain.snowflakes import MAX_ID, MIN_ID
from moderation.domain.packing import unpack_ids
from moderation.domain.states import StepState
from moderation.models import Purge, Step
from moderation.operations.access.staff_names import distinct_name_of, mark_shared_names
from moderation.operations.access.visibility import VIEW_PURGES, Actor, hidden_purges
from moderation.operations.steps.totals import deleted_in_all

MAX_STEPS = 300
"""Maximum number of steps read for one page, newest first; a bucket rarely has more than a few."""

_PURGE_FIELDS = ("reason", *(f"moderator__{name}" for name in ("username", "first_name", "last_name")))
"""What a gap shows of its purge."""

_IN_ALL = "deleted_in_all"
"""Annotation of a purge: the number of messages that it deleted."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages that one purge deleted in one place. at: when the last of them was counted.

    moderator: their name, as `distinct_name_of` returns it.
    is_visible: whether the viewer may see the purge, which may include channels elsewhere; if not, there is no reason.
    in_all: number of messages that the purge deleted anywhere; None if it is not known, or the purge is not visible.
    """

    purge_id: int
    moderator: str
    reason: str
    at: dt.datetime | None
    count: int
    is_visible: bool = True
    in_all: int | None = None


def find_gaps(
    user: Actor, channel_id: int, message_ids: Sequence[int], *, after: int | None, before: int | None
) -> dict[int | None, list[Gap]]:
    """Return the gaps above each message id of a page, and those below the last one under None.

    message_ids: ascending. after, before: exclusive bounds of the range that the page covers beyond its first and
    last message; None: that side is not covered.
    """
    low = after if after is not None else (message_ids[0] if message_ids else MAX_ID)
    high = before if before is not None else (message_ids[-1] if message_ids else MIN_ID)
    gaps: dict[int | None, list[Gap]] = {}
    if low >= high:
        return gaps
    bounds = [low, *message_ids, high]
    counts: dict[tuple[int | None, int], Gap] = {}
    steps = _steps_between(channel_id, low, high)
    mark_shared_names(user, (step.purge.moderator for step in steps), right=VIEW_PURGES)
    for step in steps:
        for index, count in _count_in_gaps(step, bounds):
            above = message_ids[index] if index < len(message_ids) else None
            known = counts.get((above, step.purge_id))
            in_all = getattr(step.purge, _IN_ALL)
            counts[above, step.purge_id] = Gap(
                purge_id=step.purge_id,
                moderator=distinct_name_of(step.purge.moderator),
                reason=step.purge.reason,
                at=_later(step.counted_at, known.at if known else None),
                count=count + (known.count if known else 0),
                in_all=None if in_all is None else int(in_all),
            )
    hidden = hidden_purges(user, {gap.purge_id for gap in counts.values()})
    for (above, _), gap in counts.items():
        shown = replace(gap, is_visible=False, reason="", in_all=None) if gap.purge_id in hidden else gap
        gaps.setdefault(above, []).append(shown)
    return gaps


def _later(one: dt.datetime | None, other: dt.datetime | None) -> dt.datetime | None:
    return max(one, other) if one and other else one or other


def _steps_between(channel_id: int, low: int, high: int) -> list[Step]:
    steps = Step.objects.filter(
        channel_id=channel_id,
        bucket__gte=bucket_of(low),
        bucket__lte=bucket_of(high),
        state=StepState.COUNTED,
        deleted__gt=0,
    )
    named = ("purge_id", "ordinal", "bucket", "deleted", "counted_at", "undone_ids")
    found = list(steps.only(*named).order_by("-counted_at")[:MAX_STEPS])
    # Most pages have no gaps. Only to build the other query would take as long as everything else here.
    if found:
        purges = Purge.objects.select_related("moderator").only(*_PURGE_FIELDS).annotate(**{_IN_ALL: deleted_in_all()})
        prefetch_related_objects(found, Prefetch("purge", purges))
    return found


def _count_in_gaps(step: Step, bounds: Sequence[int]) -> list[tuple[int, int]]:
    """Return (gap, number of the step's messages deleted there) for gaps with any.

    Gap n is between bounds n and n + 1. If the whole bucket is inside one gap, its ids are not unpacked.
    """
    first, last = bucket_ids(step.bucket)
    index = bisect_right(bounds, first) - 1
    is_whole = 0 <= index < len(bounds) - 1 and bounds[index] <= first and last < bounds[index + 1]
    if is_whole and step.undone_ids is None:
        return [(index, step.deleted)]
    ids = _deleted_ids(step.purge_id, step.ordinal, bytes(step.undone_ids or b""))
    found = []
    for number in range(len(bounds) - 1):
        inside = bisect_left(ids, bounds[number + 1]) - bisect_right(ids, bounds[number])
        if inside > 0:
            found.append((number, inside))
    return found


@lru_cache(maxsize=32)
def _deleted_ids(purge_id: int, ordinal: int, undone: bytes) -> tuple[int, ...]:
    """Return the ids that a counted step deleted and that were not restored, ascending.

    undone: packed ids that were restored. Nothing else about a counted step changes.
    """
    step = Step.objects.only("ids", "gone_ids", "failed_ids").get(purge_id=purge_id, ordinal=ordinal)
    kept = {*unpack_ids(step.gone_ids), *unpack_ids(step.failed_ids), *unpack_ids(undone or None)}
    return tuple(message_id for message_id in unpack_ids(step.ids) if message_id not in kept)
