"""Sums of counted steps, kept in the transaction that counts them, because a large purge has 50,000 steps.

Always called after the steps were locked, for one purge after the other, so that two transactions never wait for each
other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import connection
from django.db.models import F

from moderation.domain.states import DELETING
from moderation.models import PurgeDay, PurgePeriod, Step, Undo, UndoStep

RESTORED_COUNTS = ("requested", "restored", "withdrawn", "still_purged", "already_live", "no_copy", "failed")
"""Counts of an undo step, which an undo adds up."""

_PERIODS, _DAYS = PurgePeriod._meta.db_table, PurgeDay._meta.db_table

_ADD_COUNTED = f"""
WITH counted AS (
    SELECT * FROM unnest(%s::int[], %s::int[], %s::int[], %s::timestamptz[]) AS step (bucket, deleted, already_gone, at)
), days AS (
    INSERT INTO {_DAYS} (purge_id, day, deleted, last_at)
    SELECT %s, (at AT TIME ZONE 'UTC')::date AS day, sum(deleted), max(at) FROM counted
    WHERE deleted > 0 GROUP BY day ORDER BY day
    ON CONFLICT (purge_id, day) DO UPDATE SET deleted = {_DAYS}.deleted + EXCLUDED.deleted,
        last_at = greatest({_DAYS}.last_at, EXCLUDED.last_at)
)
INSERT INTO {_PERIODS} (purge_id, bucket, deleted, already_gone)
SELECT %s, bucket, sum(deleted), sum(already_gone) FROM counted GROUP BY bucket ORDER BY bucket
ON CONFLICT (purge_id, bucket) DO UPDATE SET deleted = {_PERIODS}.deleted + EXCLUDED.deleted,
    already_gone = {_PERIODS}.already_gone + EXCLUDED.already_gone
"""

_ADD_UNDONE = f"""
INSERT INTO {_PERIODS} (purge_id, bucket, undone)
SELECT %s, bucket, undone FROM unnest(%s::int[], %s::bigint[]) AS restored (bucket, undone) ORDER BY bucket
ON CONFLICT (purge_id, bucket) DO UPDATE SET undone = {_PERIODS}.undone + EXCLUDED.undone
"""


def add_counted(steps: Sequence[Step]) -> None:
    """Add steps of one purge that were counted just now."""
    deleting = [step for step in steps if step.kind in DELETING]
    if deleting:
        columns = [[getattr(step, name) for step in deleting] for name in _COUNTED_COLUMNS]
        purge_id = deleting[0].purge_id
        with connection.cursor() as cursor:
            cursor.execute(_ADD_COUNTED, [*columns, purge_id, purge_id])


_COUNTED_COLUMNS = ("bucket", "deleted", "already_gone", "counted_at")


def add_restored(steps: Sequence[UndoStep]) -> None:
    """Add steps of undos that were counted just now to their undos."""
    for undo_id in sorted({step.undo_id for step in steps}):
        own = [step for step in steps if step.undo_id == undo_id]
        sums = {name: sum(getattr(step, name) for step in own) for name in RESTORED_COUNTS}
        Undo.objects.filter(id=undo_id).update(**{name: F(name) + count for name, count in sums.items() if count})


def add_undone(purge_id: int, counts: Mapping[int, int]) -> None:
    """Add messages that the purge no longer deletes, by bucket."""
    more = sorted((bucket, count) for bucket, count in counts.items() if count)
    if more:
        with connection.cursor() as cursor:
            cursor.execute(_ADD_UNDONE, [purge_id, *map(list, zip(*more, strict=True))])
