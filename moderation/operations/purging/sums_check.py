"""Nightly check of the stored sums: those that differ from their steps are reported and computed again.

A sum and its steps change in one transaction, and are compared in one statement, so that a difference is an error and
never a step that is counted meanwhile.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping

from django.conf import settings
from django.db import IntegrityError, connection
from django.db.models import Q, QuerySet

from chatstore.domain.runs import Severity
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.findings.records import WRONG_SUMS, Problem, open_finding
from chatstore.operations.jobs.runs import Claim
from moderation.domain.states import ACTIVE_PURGES, DELETING, EXPIRES_FROM, StepState, UndoStepState
from moderation.models import Purge, PurgeDay, PurgePeriod, Step, Undo, UndoStep
from moderation.operations.steps.claiming import brief_transaction, lock_purge
from moderation.operations.steps.sums import RESTORED_COUNTS

logger = logging.getLogger(__name__)

_PURGES, _PERIODS, _DAYS = Purge._meta.db_table, PurgePeriod._meta.db_table, PurgeDay._meta.db_table
_STEPS, _UNDOS, _UNDO_STEPS = Step._meta.db_table, Undo._meta.db_table, UndoStep._meta.db_table

# Packed ids begin with their number, little-endian; a bucket has less than 2³¹ messages.
_UNDONE = " + ".join(f"(get_byte(substring(undone_ids, 1, 4), {n})::bigint << {8 * n})" for n in range(4))

_COUNTED = f"purge_id = %(purge)s AND state = '{StepState.COUNTED}'"
_KINDS = ", ".join(f"'{kind}'" for kind in DELETING)
_DELETED = f"{_COUNTED} AND kind IN ({_KINDS})"

_PERIOD_COLUMNS, _DAY_COLUMNS = "purge_id, bucket, deleted, already_gone, undone", "purge_id, day, deleted, last_at"
_UNDO_COLUMNS = ", ".join(RESTORED_COUNTS)
_SET_UNDO = ", ".join(f"{name} = sums.{name}" for name in RESTORED_COUNTS)

# Each of these has the columns of the stored sums.
_OF_PERIODS = f"""SELECT purge_id, bucket, sum(deleted) AS deleted, sum(already_gone) AS already_gone,
    coalesce(sum({_UNDONE}), 0) AS undone FROM {_STEPS} WHERE {_DELETED} GROUP BY purge_id, bucket"""
_OF_DAYS = f"""SELECT purge_id, (counted_at AT TIME ZONE 'UTC')::date AS day, sum(deleted) AS deleted,
    max(counted_at) AS last_at FROM {_STEPS}
    WHERE {_DELETED} AND deleted > 0 AND counted_at IS NOT NULL GROUP BY purge_id, day"""
# A step that starts over is quarantined again, so the purge's time may be earlier, but not later.
_FIRST_COPIES = f"least(quarantined_at, (SELECT min(quarantined_at) FROM {_STEPS} WHERE purge_id = %(purge)s))"
_OF_UNDOS = f"""SELECT undo.id, {", ".join(f"coalesce(sum(step.{name}), 0) AS {name}" for name in RESTORED_COUNTS)}
    FROM {_UNDOS} AS undo LEFT JOIN {_UNDO_STEPS} AS step ON step.undo_id = undo.id
        AND step.state = '{UndoStepState.COUNTED}'
    WHERE undo.purge_id = %(purge)s GROUP BY undo.id"""


def _differ(stored: str, counted: str) -> str:
    return f"EXISTS (({stored} EXCEPT {counted}) UNION ALL ({counted} EXCEPT {stored}))"


_HAS_WRONG_SUMS = f"""SELECT
    {_differ(f"SELECT {_PERIOD_COLUMNS} FROM {_PERIODS} WHERE purge_id = %(purge)s", _OF_PERIODS)}
    OR {_differ(f"SELECT {_DAY_COLUMNS} FROM {_DAYS} WHERE purge_id = %(purge)s", _OF_DAYS)}
    OR EXISTS (SELECT FROM {_PURGES} WHERE id = %(purge)s AND quarantined_at IS DISTINCT FROM {_FIRST_COPIES})
    OR {_differ(f"SELECT id, {_UNDO_COLUMNS} FROM {_UNDOS} WHERE purge_id = %(purge)s", _OF_UNDOS)}"""

_CORRECTIONS = (
    # A restoring import changes a step, then its period, without the purge's lock: with this lock it adds to the new
    # sum what these statements can't see yet.
    f"SELECT FROM {_PERIODS} WHERE purge_id = %(purge)s ORDER BY bucket FOR UPDATE",
    f"DELETE FROM {_PERIODS} WHERE purge_id = %(purge)s",
    f"INSERT INTO {_PERIODS} ({_PERIOD_COLUMNS}) {_OF_PERIODS}",
    f"DELETE FROM {_DAYS} WHERE purge_id = %(purge)s",
    f"INSERT INTO {_DAYS} ({_DAY_COLUMNS}) {_OF_DAYS}",
    f"UPDATE {_UNDOS} AS undo SET {_SET_UNDO} FROM ({_OF_UNDOS}) AS sums WHERE undo.id = sums.id",
    f"UPDATE {_PURGES} SET quarantined_at = {_FIRST_COPIES}, version = version + 1 WHERE id = %(purge)s",
)


def check_sums(claim: Claim) -> Mapping[str, int]:
    """Compare the sums of purges that may be undone with their steps; return counts by name. Idempotent."""
    counts = {"compared": 0, "corrected": 0}
    for purge_id in _recent_purges().values_list("id", flat=True).iterator():
        counts["compared"] += 1
        counts["corrected"] += has_wrong_sums(purge_id) and correct_sums(purge_id)
        claim.report_progress(done=counts["compared"], total=None, what=_("purges"))
    return counts


def has_wrong_sums(purge_id: int) -> bool:
    """Return whether a sum of the purge, or of an undo of it, differs from its counted steps."""
    with connection.cursor() as cursor:
        cursor.execute(_HAS_WRONG_SUMS, {"purge": purge_id})
        (is_wrong,) = cursor.fetchone() or (False,)
    return bool(is_wrong)


def correct_sums(purge_id: int) -> bool:
    """Compute the sums again and open a finding; return whether they were wrong and no worker counts its steps."""
    try:
        return _correct_sums(purge_id)
    except IntegrityError:
        # An import has inserted the sum of a period that was missing. Now the row can be locked.
        return _correct_sums(purge_id)


def _correct_sums(purge_id: int) -> bool:
    with brief_transaction():
        purge = lock_purge(purge_id)
        if purge.state in ACTIVE_PURGES or not has_wrong_sums(purge_id):
            return False
        with connection.cursor() as cursor:
            for sql in _CORRECTIONS:
                cursor.execute(sql, {"purge": purge_id})
        message = _("The sums of purge %(purge)s differed from its steps and were computed again.", purge=str(purge_id))
        open_finding(WRONG_SUMS, str(purge_id), Problem(Severity.WARNING, message, {"purge": str(purge_id)}))
    logger.error("purge %s: sums differed from its steps and were computed again", purge_id)
    return True


def _recent_purges() -> QuerySet[Purge]:
    since = ClockTimestamp() - dt.timedelta(days=settings.QUARANTINE_DAYS)
    recent = Purge.objects.filter(Q(confirmed_at__gte=since) | Q(state__in=EXPIRES_FROM), is_rewrite=False)
    return recent.exclude(state__in=ACTIVE_PURGES).order_by("id")
