"""Whose copies are whose: messages that one purge keeps and that other purges have to do with."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from chatstore.operations.clock import postgres_now
from moderation.domain.packing import unpack_ids
from moderation.domain.states import CAN_BE_UNDONE, KEEPS_NOTHING, REMOVING, PurgeState, StepState
from moderation.models import Purge, Step


@dataclass(frozen=True, slots=True)
class SharedCopies:
    """How many of the messages that a purge keeps …, by the id of the other purge.

    needed: … only it keeps, and the other one would bring back. kept: … the other one keeps as well.
    """

    needed: Mapping[int, int]
    kept: Mapping[int, int]


def shared_copies(purge: Purge) -> SharedCopies:
    """Compares the purge with every other one in its buckets.

    An undo takes each message from whichever purge keeps it. One that was taken back, while another
    purge that had found the message gone still stood for it, has what that one would need.
    """
    needed: Counter[int] = Counter()
    kept: Counter[int] = Counter()
    mine: dict[tuple[int, int], list[Step]] = defaultdict(list)
    for step in _counted(purge.steps.all()):
        mine[step.channel_id, step.bucket].append(step)
    for other in _beside(purge):
        removed, gone = _removed(other), frozenset(unpack_ids(other.gone_ids))
        stands = gone.difference(unpack_ids(other.undone_ids)) if other.purge.state in _MAY_UNDO else frozenset[int]()
        for step in mine[other.channel_id, other.bucket]:
            has = _removed(step)
            kept[other.purge_id] += len(has & removed)
            needed[other.purge_id] += len(stands.intersection(has, unpack_ids(step.undone_ids)))
    return SharedCopies(+needed, +kept)


_MAY_UNDO = CAN_BE_UNDONE | {PurgeState.UNDOING}


def _counted(steps: QuerySet[Step]) -> QuerySet[Step]:
    return steps.filter(kind__in=REMOVING, state=StepState.COUNTED).defer("sketch", "spans", "survivors")


def _beside(purge: Purge) -> QuerySet[Step]:
    """The counted steps of other purges in the same buckets, as far as they still keep something."""
    since = postgres_now() - dt.timedelta(days=settings.QUARANTINE_DAYS + 1)
    here = _counted(purge.steps.all()).filter(channel_id=OuterRef("channel_id"), bucket=OuterRef("bucket"))
    others = _counted(Step.objects.all()).filter(Exists(here), quarantined_at__gt=since).exclude(purge_id=purge.pk)
    return others.exclude(purge__state__in=KEEPS_NOTHING).select_related("purge")


def _removed(step: Step) -> frozenset[int]:
    """The ids that a step deleted, and therefore keeps."""
    return frozenset(unpack_ids(step.ids)).difference(unpack_ids(step.gone_ids), unpack_ids(step.failed_ids))
