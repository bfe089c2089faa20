"""Totals of a purge, which always add up: deleted + already gone + held + failed + left = manifest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from django.db import connection
from django.db.models import F, OuterRef, Q, Subquery, Sum

from moderation.domain.states import STEP_STATES, StepKind
from moderation.models import Purge, PurgePeriod, Step, Undo


@dataclass(frozen=True, slots=True)
class PurgeTotals:
    """Counts of verified outcomes. left: messages without an outcome so far, or ever if the purge was cancelled.

    later: the part of `left` that is deferred until it is over an hour old.
    """

    manifest: int
    deleted: int
    already_gone: int
    held: int
    failed: int
    left: int
    later: int

    def as_json(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CopyCounts:
    """Messages of which a purge has copies. restored: those that are live again; None if that is not known."""

    copied: int
    restored: int | None

    @property
    def only_copied(self) -> int | None:
        """Messages that cannot be restored without these copies, except from those of other purges."""
        return None if self.restored is None else self.copied - self.restored


_STEPS, _PERIODS, _UNDOS = Step._meta.db_table, PurgePeriod._meta.db_table, Undo._meta.db_table
_FINAL = ", ".join(f"'{state}'" for state in STEP_STATES.final)

# The conditions are those of partial indexes: of 50,000 steps only those are read that are held, failed or deferred.
_TOTALS = f"""
SELECT coalesce(sum(deleted), 0), coalesce(sum(already_gone), 0), coalesce(sum(undone), 0),
    (SELECT coalesce(sum(held), 0) FROM {_STEPS} WHERE purge_id = %(purge)s AND held > 0),
    (SELECT coalesce(sum(failed), 0) FROM {_STEPS} WHERE purge_id = %(purge)s AND failed > 0),
    (SELECT coalesce(sum(count), 0) FROM {_STEPS}
        WHERE purge_id = %(purge)s AND kind = '{StepKind.LATER}' AND NOT state IN ({_FINAL}))
FROM {_PERIODS} WHERE purge_id = %(purge)s
"""

_HELD = f"(SELECT coalesce(sum(held), 0) FROM {_STEPS} WHERE purge_id = purge.id AND held > 0)"
_FAILED = f"(SELECT coalesce(sum(failed), 0) FROM {_STEPS} WHERE purge_id = purge.id AND failed > 0)"

_DECIDED = f"""
SELECT purge.id, (SELECT coalesce(sum(deleted + already_gone), 0) FROM {_PERIODS} WHERE purge_id = purge.id)
    + {_HELD}
    + {_FAILED}
FROM unnest(%(purges)s::bigint[]) AS purge (id)
"""

_ENDED = f"""
SELECT purge.id,
    (SELECT coalesce(sum(deleted + already_gone - undone), 0) FROM {_PERIODS} WHERE purge_id = purge.id),
    {_HELD},
    {_FAILED}
FROM unnest(%(purges)s::bigint[]) AS purge (id)
"""


_RESTORED = f"""
SELECT coalesce(sum(deleted + already_gone - undone), 0), coalesce(sum(undone), 0),
    (SELECT coalesce(sum(restored + already_live), 0) FROM {_UNDOS} WHERE purge_id = %(purge)s),
    (SELECT coalesce(sum(withdrawn + still_purged), 0) FROM {_UNDOS} WHERE purge_id = %(purge)s)
FROM {_PERIODS} WHERE purge_id = %(purge)s
"""


def count_decided(purge_ids: Sequence[int]) -> dict[int, int]:
    """Return the number of messages with a verified outcome, all but `left`, by the IDs of purges, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_DECIDED, {"purges": list(purge_ids)})
        return {purge_id: int(count) for purge_id, count in cursor.fetchall()}


def count_still_deleted(purge: Purge) -> int:
    """Return the number of messages that the purge deleted or found already gone, without restored ones."""
    return sum_up(purge)[1]


@dataclass(frozen=True, slots=True)
class RestoredCounts:
    """Messages that a purge deleted or found already gone: still deleted, restored by undos, restored by imports.

    Those that their author withdrew, or that another purge deletes, are none of these.
    """

    still_deleted: int
    by_undos: int
    by_imports: int

    @property
    def has_any(self) -> bool:
        """Return whether any message was restored."""
        return self.by_undos > 0 or self.by_imports > 0


def split_restored(*, still_deleted: int, undone: int, by_undos: int, not_restored: int) -> RestoredCounts:
    """Return how many messages were restored, and by what.

    undone: messages that the purge no longer deletes. by_undos: those of them that undos restored or found live.
    not_restored: those that undos left deleted, as in `count_copies`. Imports restored the others.
    """
    # The sums may be read one after the other.
    return RestoredCounts(still_deleted, by_undos, max(undone - by_undos - not_restored, 0))


def count_restored(purge: Purge) -> RestoredCounts:
    """Return how many messages are still deleted and how many were restored, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_RESTORED, {"purge": purge.pk})
        still_deleted, undone, by_undos, not_restored = map(int, cursor.fetchone() or ())
    return split_restored(still_deleted=still_deleted, undone=undone, by_undos=by_undos, not_restored=not_restored)


def count_each_still_deleted(purge_ids: Sequence[int]) -> dict[int, int]:
    """Return the same of several purges, by their IDs, in one query."""
    left = Sum(F("deleted") + F("already_gone") - F("undone"))
    counts = PurgePeriod.objects.filter(purge_id__in=purge_ids).order_by().values_list("purge_id").annotate(left=left)
    return {purge_id: int(count) for purge_id, count in counts}


@dataclass(frozen=True, slots=True)
class EndedCounts:
    """Counts of a purge that has ended. still_deleted: with those already gone, without restored ones."""

    still_deleted: int
    held: int
    failed: int


def count_each_ended(purge_ids: Sequence[int]) -> dict[int, EndedCounts]:
    """Return the counts of several purges, by their IDs, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_ENDED, {"purges": list(purge_ids)})
        return {purge_id: EndedCounts(*map(int, counts)) for purge_id, *counts in cursor.fetchall()}


def deleted_in_all() -> Subquery:
    """Return an expression for a queryset of purges: the number of messages that each deleted and did not restore.

    None if it is not known: which of the restored ones were already gone is not counted.
    """
    sums = PurgePeriod.objects.filter(purge=OuterRef("pk")).order_by().values("purge")
    sums = sums.annotate(gone=Sum("already_gone"), back=Sum("undone")).filter(Q(gone=0) | Q(back=0))
    return Subquery(sums.values_list(Sum("deleted") - F("back")))


def count_each_held(purge_ids: Collection[int]) -> dict[int, int]:
    """Return the number of messages that holds kept, by the IDs of those purges that have any, in one query."""
    held = Step.objects.filter(purge_id__in=purge_ids, held__gt=0).order_by().values_list("purge_id")
    return {purge_id: int(count) for purge_id, count in held.annotate(total=Sum("held"))}


def count_copies(totals: PurgeTotals, *, still_deleted: int, not_restored: int = 0) -> CopyCounts:
    """Return the number of a purge's copies. still_deleted: what `count_still_deleted` returns.

    not_restored: messages that the purge no longer deletes, but that its undos did not restore, because their author
    withdrew them or another purge deletes them.

    The purge has no copies of messages that were already gone; some of them may have been restored from other purges.
    """
    restored = totals.deleted + totals.already_gone - still_deleted - not_restored
    if totals.already_gone and restored:
        return CopyCounts(totals.deleted, None if still_deleted or not_restored else totals.deleted)
    return CopyCounts(totals.deleted, restored)


def totals_of(purge: Purge) -> PurgeTotals:
    """Return the totals of a purge."""
    return sum_up(purge)[0]


def sum_up(purge: Purge) -> tuple[PurgeTotals, int]:
    """Return the totals of a purge and what `count_still_deleted` returns, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_TOTALS, {"purge": purge.pk})
        deleted, already_gone, undone, held, failed, later = map(int, cursor.fetchone() or ())
    left = purge.manifest - (deleted + already_gone + held + failed)
    totals = PurgeTotals(purge.manifest, deleted, already_gone, held, failed, left, later)
    return totals, deleted + already_gone - undone
