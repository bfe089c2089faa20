"""Interaction of imports with purges: ids that an import must not restore, and ids that it restored."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from operator import itemgetter

from django.db import models
from django.db.models import Max, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from chatstore.domain.buckets import BucketKey
from chatstore.domain.errors import Forbidden
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.users import User
from chatstore.operations.rights import scope_for
from moderation.domain.packing import count_packed, pack_ids, unpack_ids
from moderation.domain.states import StepKind, StepState
from moderation.models import Purge, Step
from moderation.operations.access.audit import record_action
from moderation.operations.access.visibility import ADD_PURGE, name_of, require
from moderation.operations.steps.claiming import brief_transaction
from moderation.operations.steps.deleted_ids import deleted_by_step, deleted_ids
from moderation.operations.steps.sums import add_undone

RESTORED_BY_IMPORT = "restored_by_import"

AUDIT_ENTRIES_AT_ONCE = 20
"""Audit entries in memory at a time, each with at most the ids of one load."""

OnRestored = Callable[[int, int, Iterable[int]], None]
"""(channel id, bucket, ids) that were restored."""


class DeletedIds:
    """Ids deleted by purges, in channels that an import has locked.

    The lock keeps the steps of these channels unchanged, so what was read remains valid: the buckets with steps are
    queried once, and the ids of the last bucket are cached.
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
            self._last = key, deleted_ids(channel_id, bucket)
        return self._last[1]


def restore_on_import_as(moderator: User) -> OnRestored:
    """Return the callback for one import with `--restore`, requested by `moderator`. Raises `Forbidden`."""
    require(moderator, ADD_PURGE)
    if not scope_for(moderator, ADD_PURGE).is_everything:
        raise Forbidden(_("An import can have any channel, so restoring by it takes permission for all of them."))
    return partial(restore_on_import, moderator=moderator, import_id=uuid.uuid4().hex)


def restore_on_import(channel_id: int, bucket: int, ids: Iterable[int], *, moderator: User, import_id: str) -> None:
    """Record that an import restored ids: no purge of the bucket deletes them any more.

    The audit log of each affected purge lists the ids, the import, and who requested it. Called after the rows were
    written, by an import that has locked the channel. A run that dies in between is repeated and records them then.
    Idempotent.
    """
    restored = set(ids)
    undone: Counter[int] = Counter()
    with brief_transaction():
        for step in _deleting_steps(channel_id, bucket).select_related("purge").select_for_update(of=("self",)):
            packed = pack_ids(sorted(restored & deleted_by_step(step)))
            if count_packed(packed):
                step.undone_ids = pack_ids(sorted({*unpack_ids(step.undone_ids), *unpack_ids(packed)}))
                step.save(update_fields=["undone_ids"])
                undone[step.purge_id] += count_packed(packed)
                record_action(
                    RESTORED_BY_IMPORT,
                    actor=moderator,
                    purge=step.purge,
                    channel_id=channel_id,
                    details={"bucket": bucket, "ids": count_packed(packed), "import": import_id},
                    ids=packed,
                )
        for purge_id, count in sorted(undone.items()):
            add_undone(purge_id, {bucket: count})


@dataclass(frozen=True, slots=True)
class RestoredByImport:
    """Messages of a purge that an import restored. at: when the last of them was restored.

    import_id, moderator: None if an older version did not record them.
    """

    import_id: str | None
    moderator: User | None
    count: int
    at: dt.datetime

    @property
    def name(self) -> str:
        """Name of the moderator who requested it; "" if unknown."""
        return "" if self.moderator is None else name_of(self.moderator)


def imports_of(purge: Purge) -> list[RestoredByImport]:
    """Return the imports that restored messages of a purge, oldest first."""
    entries = purge.audit.filter(action=RESTORED_BY_IMPORT).order_by()
    entries = entries.annotate(run=_detail("import"), count=Cast(_detail("ids"), models.IntegerField()))
    found = entries.values_list("run", "actor").annotate(total=Sum("count"), last=Max("at")).order_by("last")
    actors = User.objects.in_bulk([actor for _, actor, _, _ in found if actor is not None])
    return [RestoredByImport(run, actors.get(actor), total, last) for run, actor, total, last in found]


def restored_in(purge: Purge, import_id: str, *, places: Q) -> Iterator[tuple[int, int, frozenset[int]]]:
    """Yield (channel id, bucket, ids) that an import restored of a purge, by channel and bucket.

    places: a condition on `channel_id` and `bucket`.
    """
    bucket = Cast(_detail("bucket"), models.IntegerField())
    entries = (
        purge.audit.filter(action=RESTORED_BY_IMPORT, details__import=import_id).annotate(bucket=bucket).filter(places)
    )
    rows = (
        entries.order_by("channel_id", "bucket")
        .values_list("channel_id", "bucket", "ids")
        .iterator(AUDIT_ENTRIES_AT_ONCE)
    )
    for (channel_id, in_bucket), here in groupby(rows, key=itemgetter(0, 1)):
        yield channel_id, in_bucket, frozenset(chain.from_iterable(unpack_ids(row[2]) for row in here))


def _detail(name: str) -> KeyTextTransform:
    return KeyTextTransform(name, "details")


def _deleting_steps(channel_id: int, bucket: int) -> QuerySet[Step]:
    return Step.objects.filter(
        channel_id=channel_id,
        bucket=bucket,
        state=StepState.COUNTED,
        kind__in=(StepKind.ROWS, StepKind.RANGES, StepKind.LATER),
    )
