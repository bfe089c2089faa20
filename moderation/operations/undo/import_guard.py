"""What an import and purges have to do with each other: the ids that it may not bring back, or did."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from operator import itemgetter

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Max, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from chatstore.domain.buckets import BucketKey
from moderation.domain.packing import count_packed, pack_ids, unpack_ids
from moderation.domain.states import StepKind, StepState
from moderation.models import Purge, Step
from moderation.operations.access.audit import record_act
from moderation.operations.access.visibility import name_of, require
from moderation.operations.steps.claiming import brief_transaction
from moderation.operations.steps.removed_ids import standing_ids, standing_of

PUT_BACK = "put_back_by_import"

ACTS_AT_ONCE = 20
"""Acts in memory together, each with the ids of a load at most."""

PutBack = Callable[[int, int, Iterable[int]], None]
"""(channel id, bucket, ids) that are back."""


class StandingPurges:
    """For which ids a purge stands, in channels that an import has locked.

    The lock keeps every step of the channels where it is, so what was read stays true: the
    buckets with steps are asked for once, the ids of the last bucket are kept.
    """

    def __init__(self, channel_ids: Collection[int]) -> None:
        steps = Step.objects.filter(channel_id__in=channel_ids, state=StepState.COUNTED)
        self._buckets = set(steps.values_list("channel_id", "bucket").distinct())
        self._last: tuple[BucketKey, Collection[int]] | None = None

    def __call__(self, channel_id: int, bucket: int) -> Collection[int]:
        key = channel_id, bucket
        if key not in self._buckets:
            return ()
        if self._last is None or self._last[0] != key:
            self._last = key, standing_ids(channel_id, bucket)
        return self._last[1]


def put_back_as(moderator: User) -> PutBack:
    """The `on_put_back` of one import with `--restore`, asked for by `moderator`. Raises `Forbidden`."""
    require(moderator, "moderation.add_purge")
    return partial(put_back, moderator=moderator, import_id=uuid.uuid4().hex)


def put_back(channel_id: int, bucket: int, ids: Iterable[int], *, moderator: User, import_id: str) -> None:
    """Note that an import brought ids back: no purge of the bucket stands for them any more.

    The audit of each purge that stood for some says which, in which import, and who asked for it.
    Called after they were written, by an import that holds the channel. A run that dies in
    between is repeated, and notes them then. Done twice it changes nothing.
    """
    back = set(ids)
    with brief_transaction():
        for step in _removing_steps(channel_id, bucket).select_related("purge").select_for_update(of=("self",)):
            mine = pack_ids(sorted(back & standing_of(step)))
            if count_packed(mine):
                step.undone_ids = pack_ids(sorted({*unpack_ids(step.undone_ids), *unpack_ids(mine)}))
                step.save(update_fields=["undone_ids"])
                record_act(
                    PUT_BACK,
                    actor=moderator,
                    purge=step.purge,
                    channel_id=channel_id,
                    details={"bucket": bucket, "ids": count_packed(mine), "import": import_id},
                    ids=mine,
                )


@dataclass(frozen=True, slots=True)
class Restored:
    """What an import brought back of a purge. import_id, moderator: None where an older version did not note them.

    at: when the last of it was back.
    """

    import_id: str | None
    moderator: User | None
    count: int
    at: dt.datetime

    @property
    def name(self) -> str:
        """Of who asked for it; "" when that is not known."""
        return "" if self.moderator is None else name_of(self.moderator)


def imports_of(purge: Purge) -> list[Restored]:
    """The imports that brought something of a purge back, the first one first."""
    acts = purge.audit.filter(act=PUT_BACK).order_by()
    acts = acts.annotate(run=_detail("import"), count=Cast(_detail("ids"), models.IntegerField()))
    found = acts.values_list("run", "actor").annotate(total=Sum("count"), last=Max("at")).order_by("last")
    actors = User.objects.in_bulk([actor for _, actor, _, _ in found if actor is not None])
    return [Restored(run, actors.get(actor), total, last) for run, actor, total, last in found]


def restored_in(purge: Purge, import_id: str, *, places: Q) -> Iterator[tuple[int, int, frozenset[int]]]:
    """(channel id, bucket, ids) of what an import brought back of a purge, by channel and bucket.

    places: a condition on `channel_id` and `bucket`.
    """
    bucket = Cast(_detail("bucket"), models.IntegerField())
    acts = purge.audit.filter(act=PUT_BACK, details__import=import_id).annotate(bucket=bucket).filter(places)
    rows = acts.order_by("channel_id", "bucket").values_list("channel_id", "bucket", "ids").iterator(ACTS_AT_ONCE)
    for (channel_id, in_bucket), here in groupby(rows, key=itemgetter(0, 1)):
        yield channel_id, in_bucket, frozenset(chain.from_iterable(unpack_ids(row[2]) for row in here))


def _detail(name: str) -> KeyTextTransform:
    return KeyTextTransform(name, "details")


def _removing_steps(channel_id: int, bucket: int) -> QuerySet[Step]:
    return Step.objects.filter(
        channel_id=channel_id,
        bucket=bucket,
        state=StepState.COUNTED,
        kind__in=(StepKind.ROWS, StepKind.SPANS, StepKind.LATER),
    )
