"""One step of an undo: restores the messages that one step of a purge deleted, each id with every column.

1. *planning*: a stamp U is issued; then withdrawals, ids deleted by other purges, and live ids are read.
2. *stamped*: U and the ids to restore are stored in one write, with the counts of the others.
3. *restored*: the ledger entry of the bucket is cleared, so that readers skip nothing, and the ids are written at
   max(U, their quarantined WRITETIME + 1).
4. *verified*: messages withdrawn in the meantime are deleted by row, and the bucket is read.
5. *closed*: the ledger entry is cleared again.
6. *counted*: counts are stored, and the ids that the purge no longer deletes.

Before *stamped* nothing was written, and another worker starts over. After it every write may have been sent before:
at the same stamp it is the same row.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID, WRITETIME
from chatstore.domain.texts import ngettext_lazy
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.clock import check_clock, postgres_now
from chatstore.operations.coordination.timestamps import issue_stamp
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.store import ledger, scans
from chatstore.store.withdrawn import read_withdrawals
from moderation.domain.chunks import Row, writetime_of
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.restoring import plan_restore
from moderation.domain.states import DELETING, WITHOUT_COPIES, StepState, UndoStepState
from moderation.models import Step, UndoStep
from moderation.operations.access.audit import record_action
from moderation.operations.steps.claiming import brief_transaction, check_still_running, move_step
from moderation.operations.steps.deleted_ids import deleted_by_others, deleted_by_step
from moderation.operations.steps.shared_copies import copies_of, renew_copies
from moderation.operations.undo.requests import UndoPart, is_past_undo_period
from moderation.store import deletes
from moderation.store.pace import Pace
from moderation.store.restores import write_rows


def restore_step(step: UndoStep, *, pace: Pace) -> None:
    """Any state → *counted*. Raises `StepLost`, `StoreUnavailable`, `WriteRefused`."""
    # Also when resuming another worker's step: the ledger is updated with this clock's time,
    # and a clock that is behind would leave restored messages invisible.
    check_clock()
    if step.state == UndoStepState.PENDING:
        _plan(step)
    wanted = unpack_ids(step.restore_ids)
    if step.state == UndoStepState.STAMPED:
        _store_copies_for_others(step)
        ledger.clear_live(step.channel_id, step.bucket)
        _write(step, wanted, pace)
        move_step(step, UndoStepState.RESTORED)
    # A step that was taken over is verified again: the worker that counts it must have read the bucket itself.
    _verify(step, wanted, pace)


def _plan(step: UndoStep) -> None:
    with brief_transaction():
        check_still_running(step.purge_id)
        stamp = issue_stamp(step.channel_id, step.bucket)
        move_step(step, UndoStepState.PLANNING)
    requested = _requested_ids(step)
    plan = plan_restore(
        requested,
        withdrawn=_withdrawn_of(step, requested),
        deleted_elsewhere=deleted_by_others(step),
        live=_live_ids(step),
    )
    move_step(
        step,
        UndoStepState.STAMPED,
        restore_stamp=stamp,
        restore_ids=pack_ids(sorted(plan.wanted)),
        skipped_ids=pack_ids(sorted(plan.withdrawn | plan.still_purged | plan.already_live)),
        requested=len(requested),
        withdrawn=len(plan.withdrawn),
        still_purged=len(plan.still_purged),
        already_live=len(plan.already_live),
    )


def _requested_ids(step: UndoStep) -> set[int]:
    """Return the requested ids that the undone step deleted or found already gone, and that it still deletes."""
    deleted = deleted_by_step(_undone_step(step))
    part = UndoPart.from_json(step.undo.part)
    if part.message_ids:
        deleted.intersection_update(part.message_ids)
    if part.author_ids or is_past_undo_period(step.purge):
        # After the undo period only copies that a hold covered are left, and only those were offered.
        authors = frozenset(part.author_ids)
        has_copy = (row for chunk in copies_of(step.channel_id, step.bucket, deleted) for row in chunk)
        deleted = {row[MESSAGE_ID] for row in has_copy if not authors or row[AUTHOR_ID] in authors}
    return deleted


def _undone_step(step: UndoStep) -> Step:
    return Step.objects.get(purge_id=step.purge_id, ordinal=step.ordinal)


def _withdrawn_of(step: UndoStep, ids: set[int]) -> set[int]:
    """Return the ids that their authors withdrew, before or after the purge; the quarantine identifies the authors."""
    noted = read_withdrawals(step.channel_id, step.bucket)
    claimed = ids.intersection(noted.claims)
    authors = (
        {row[MESSAGE_ID]: row[AUTHOR_ID] for rows in copies_of(step.channel_id, step.bucket, claimed) for row in rows}
        if claimed
        else {}
    )
    return ids.intersection(noted.certain) | {i for i in claimed if noted.has(i, author_id=authors.get(i))}


def _live_ids(step: UndoStep) -> set[int]:
    pages = scans.read_all_ids(step.channel_id, step.bucket)
    return {message_id for page in pages for message_id, author in page if author is not None}


def _store_copies_for_others(step: UndoStep) -> None:
    """Store copies with other purges that had found a message already gone and still delete it.

    The message is restored when such a purge is undone, up to 30 days after its own quarantine; this purge's copies
    may have expired by then. Idempotent.
    """
    here = Step.objects.filter(channel_id=step.channel_id, bucket=step.bucket, kind__in=DELETING)
    others = here.filter(state=StepState.COUNTED).exclude(purge_id=step.purge_id)
    found_gone = others.exclude(purge__state__in=WITHOUT_COPIES).order_by("purge_id", "ordinal")
    skipped = frozenset(unpack_ids(step.skipped_ids))
    for number, other in enumerate(found_gone):
        needed = skipped.intersection(unpack_ids(other.gone_ids)).difference(unpack_ids(other.undone_ids))
        needed -= _withdrawn_of(step, set(needed))
        if needed and renew_copies(other, needed, attempt=_require_stamp(step) + number):
            Step.objects.filter(purge_id=other.purge_id, ordinal=other.ordinal).update(
                copies_stored_at=ClockTimestamp()
            )


def _require_stamp(step: UndoStep) -> int:
    """Return the step's stamp, which its state guarantees."""
    if step.restore_stamp is None:
        raise ValueError("the step has no stamp although its state requires one")
    return step.restore_stamp


def _write(step: UndoStep, wanted: Sequence[int], pace: Pace) -> None:
    stamp = _require_stamp(step)

    def stamp_of(row: Row) -> int:
        return max(stamp, (writetime_of(row) or 0) + 1)

    write_rows(
        step.channel_id, step.bucket, copies_of(step.channel_id, step.bucket, wanted), stamp_of=stamp_of, pace=pace
    )


def _verify(step: UndoStep, wanted: Sequence[int], pace: Pace) -> None:
    withdrawn_since = _withdrawn_of(step, set(wanted))
    _delete_withdrawn(step, sorted(withdrawn_since), pace)
    missing = set(wanted).difference(_live_ids(step), withdrawn_since)
    has_copy = (
        {row[MESSAGE_ID] for chunk in copies_of(step.channel_id, step.bucket, missing) for row in chunk}
        if missing
        else set()
    )
    if step.state == UndoStepState.RESTORED:
        move_step(step, UndoStepState.VERIFIED)
    ledger.clear_live(step.channel_id, step.bucket)
    if step.state == UndoStepState.VERIFIED:
        move_step(step, UndoStepState.CLOSED)
    _count(step, wanted, missing=missing, has_copy=has_copy, withdrawn_since=withdrawn_since)


def _delete_withdrawn(step: UndoStep, ids: Sequence[int], pace: Pace) -> None:
    """Delete messages that their author withdrew during the undo, at the stamp they were restored with."""
    rows = scans.read_rows_with_writetime(step.channel_id, step.bucket, ids)
    stamps = ([(row[MESSAGE_ID], row[WRITETIME]) for row in page] for page in rows)
    note_deletes(step.channel_id, step.bucket, len(ids))
    deletes.delete_rows(step.channel_id, step.bucket, stamps, pace=pace)


def _count(
    step: UndoStep, wanted: Sequence[int], *, missing: set[int], has_copy: set[int], withdrawn_since: set[int]
) -> None:
    with brief_transaction():
        move_step(
            step,
            UndoStepState.COUNTED,
            failed_ids=pack_ids(sorted(missing)),
            restored=len(wanted) - len(missing) - len(withdrawn_since),
            withdrawn=step.withdrawn + len(withdrawn_since),
            no_copy=len(missing - has_copy),
            failed=len(has_copy),
            error=ngettext_lazy("%(count)s could not be restored", "%(count)s could not be restored", len(has_copy))
            if has_copy
            else "",
            counted_at=postgres_now(),
            token=None,
            lease_until=None,
        )
        source = _undone_step(step)
        undone = {*unpack_ids(source.undone_ids), *unpack_ids(step.skipped_ids), *wanted} - missing
        Step.objects.filter(pk=source.pk).update(undone_ids=pack_ids(sorted(undone)))
        counts = ("requested", "restored", "withdrawn", "still_purged", "already_live", "no_copy", "failed")
        record_action(
            "undo_step_counted",
            actor=None,
            purge=step.purge,
            channel_id=step.channel_id,
            details={"bucket": step.bucket, **{name: getattr(step, name) for name in counts}},
        )
