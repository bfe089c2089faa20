"""Steps of an undo: each restores the messages that one step of a purge deleted, each id with every column.

Small steps are processed in groups, as those of purges are.

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

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from django.db import connection

from chatstore.domain.buckets import BucketKey
from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID, WRITETIME
from chatstore.domain.texts import Text, ngettext_lazy
from chatstore.domain.withdrawals import NONE
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.clock import check_clock, postgres_now
from chatstore.operations.coordination.timestamps import issue_stamps
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.store import loads, scans
from chatstore.store.activity import note_removals
from moderation.domain.chunks import Row, writetime_of
from moderation.domain.packing import count_packed, pack_ids, unpack_ids
from moderation.domain.restoring import plan_restore
from moderation.domain.states import WITHOUT_COPIES, UndoStepState
from moderation.models import Step, UndoStep
from moderation.operations.steps.claiming import brief_transaction, bump_version, check_still_running, move_steps
from moderation.operations.steps.deleted_ids import deleted_by_others, deleted_by_step
from moderation.operations.steps.shared_copies import copies_in, renew_copies
from moderation.operations.steps.sums import add_restored, add_undone
from moderation.operations.undo.requests import UndoPart, is_past_undo_period
from moderation.store import deletes
from moderation.store.pace import Pace
from moderation.store.restores import write_rows_in

IdsOf = Mapping[UndoStep, set[int]]

BATCHES_PER_BUCKET, MAX_BATCHES = 6, 32
"""Batches of restored rows in flight."""


def restore_steps(steps: Sequence[UndoStep], *, pace: Pace) -> list[UndoStep]:
    """Any state → *counted*; returns the steps that this worker counted.

    steps: of one purge, in the same state, each in another bucket. Raises `StepLost`, `StoreUnavailable`,
    `WriteRefused`.
    """
    # Also when resuming another worker's step: the ledger is updated with this clock's time,
    # and a clock that is behind would leave restored messages invisible.
    check_clock()
    left = list(steps)
    if left[0].state == UndoStepState.PENDING:
        left = _plan(left)
    if left and left[0].state == UndoStepState.STAMPED:
        _store_copies_for_others(left)
        loads.clear_live_in(_keys(left))
        _write(left, pace)
        left = move_steps(left, UndoStepState.RESTORED)
    # Steps that were taken over are verified again: the worker that counts them must have read the buckets itself.
    return _verify(left, pace) if left else []


def _key(step: Step | UndoStep) -> BucketKey:
    return step.channel_id, step.bucket


def _keys(steps: Collection[UndoStep]) -> list[BucketKey]:
    return [_key(step) for step in steps]


def _plan(steps: Sequence[UndoStep]) -> list[UndoStep]:
    with brief_transaction():
        check_still_running(steps[0])
        stamps = issue_stamps(_keys(steps))
        claimed = move_steps(steps, UndoStepState.PLANNING)
    if not claimed:
        return []
    requested = _requested_ids(claimed)
    withdrawn = _withdrawn_of(requested)
    elsewhere = deleted_by_others(claimed[0].purge_id, {_key(step): ids for step, ids in requested.items()})
    live = _live_ids(requested)
    own = {}
    for step in claimed:
        plan = plan_restore(
            requested[step],
            withdrawn=withdrawn[step],
            deleted_elsewhere=elsewhere.get(_key(step), set()),
            live=live[step],
        )
        own[step] = {
            "restore_stamp": stamps[_key(step)],
            "restore_ids": pack_ids(sorted(plan.wanted)),
            "skipped_ids": pack_ids(sorted(plan.withdrawn | plan.still_purged | plan.already_live)),
            "requested": len(requested[step]),
            "withdrawn": len(plan.withdrawn),
            "still_purged": len(plan.still_purged),
            "already_live": len(plan.already_live),
        }
    return move_steps(claimed, UndoStepState.STAMPED, each=own)


def _requested_ids(steps: Sequence[UndoStep]) -> dict[UndoStep, set[int]]:
    """Return the requested ids that the undone steps deleted or found already gone, and that they still delete."""
    purge = steps[0].purge
    undone = {step.ordinal: step for step in _undone_steps(steps)}
    parts = {undo.pk: UndoPart.from_json(undo.part) for undo in purge.undos.filter(pk__in={i.undo_id for i in steps})}
    # After the undo period only copies that a hold covered are left, and only those were offered.
    is_past = is_past_undo_period(purge)
    requested: dict[UndoStep, set[int]] = {}
    for step in steps:
        part = parts[step.undo_id]
        deleted = deleted_by_step(undone[step.ordinal])
        requested[step] = deleted.intersection(part.message_ids) if part.message_ids else deleted
    if is_past or any(part.author_ids for part in parts.values()):
        authors = _copied_authors(requested)
        for step, ids in requested.items():
            chosen = frozenset(parts[step.undo_id].author_ids)
            if is_past or chosen:
                copied = authors[step]
                requested[step] = {i for i in ids if i in copied and (not chosen or copied[i] in chosen)}
    return requested


def _undone_steps(steps: Collection[UndoStep]) -> list[Step]:
    purge_id = next(iter(steps)).purge_id
    return list(Step.objects.filter(purge_id=purge_id, ordinal__in={step.ordinal for step in steps}))


def _copied_authors(ids: IdsOf) -> dict[UndoStep, dict[int, int]]:
    """Return the authors of the messages that have a copy, by id."""
    by_key = {_key(step): step for step in ids}
    authors: dict[UndoStep, dict[int, int]] = {step: {} for step in ids}
    for key, rows in copies_in({_key(step): wanted for step, wanted in ids.items()}):
        authors[by_key[key]].update((row[MESSAGE_ID], row[AUTHOR_ID]) for row in rows)
    return authors


def _withdrawn_of(ids: IdsOf) -> dict[UndoStep, set[int]]:
    """Return the ids that their authors withdrew, before or after the purge; the quarantine identifies the authors."""
    noted = loads.withdrawn_in(_keys(ids))
    of_step = {step: noted.get(_key(step), NONE) for step in ids}
    claimed = {step: wanted.intersection(of_step[step].claims) for step, wanted in ids.items()}
    authors = _copied_authors({step: wanted for step, wanted in claimed.items() if wanted})
    return {
        step: wanted.intersection(of_step[step].certain)
        | {i for i in claimed[step] if of_step[step].has(i, author_id=authors[step].get(i))}
        for step, wanted in ids.items()
    }


def _live_ids(ids: IdsOf) -> dict[UndoStep, set[int]]:
    """Return those of the ids that are live."""
    live = scans.read_live_ids_in({_key(step): wanted for step, wanted in ids.items()})
    return {step: live[_key(step)] for step in ids}


def _store_copies_for_others(steps: Sequence[UndoStep]) -> None:
    """Store copies with other purges that had found a message already gone and still delete it.

    The message is restored when such a purge is undone, up to 30 days after its own quarantine; this purge's copies
    may have expired by then. Idempotent.
    """
    by_key = {_key(step): step for step in steps}
    others = Step.objects.in_buckets(by_key).counted_deletes()
    others = others.exclude(purge_id=steps[0].purge_id).exclude(purge__state__in=WITHOUT_COPIES)
    # Each with an attempt of its own; the same ones if the step is repeated alone.
    numbers: Counter[BucketKey] = Counter()
    for other in others.order_by("purge_id", "ordinal").defer("ids", "ranges", "survivors", "sketch").iterator(100):
        step = by_key[_key(other)]
        number = numbers[_key(other)]
        numbers[_key(other)] += 1
        skipped = frozenset(unpack_ids(step.skipped_ids))
        needed = skipped.intersection(unpack_ids(other.gone_ids)).difference(unpack_ids(other.undone_ids))
        if not needed:
            continue
        needed -= _withdrawn_of({step: set(needed)})[step]
        if needed and renew_copies(other, needed, attempt=_require_stamp(step) + number):
            Step.objects.filter(purge_id=other.purge_id, ordinal=other.ordinal).update(
                copies_stored_at=ClockTimestamp()
            )


def _require_stamp(step: UndoStep) -> int:
    """Return the step's stamp, which its state guarantees."""
    if step.restore_stamp is None:
        raise ValueError("the step has no stamp although its state requires one")
    return step.restore_stamp


def _write(steps: Sequence[UndoStep], pace: Pace) -> None:
    stamps = {_key(step): _require_stamp(step) for step in steps}

    def stamp_of(key: BucketKey, row: Row) -> int:
        return max(stamps[key], (writetime_of(row) or 0) + 1)

    copies = copies_in({_key(step): unpack_ids(step.restore_ids) for step in steps})
    # A few batches of each bucket: more would only wait for each other.
    write_rows_in(copies, stamp_of=stamp_of, pace=pace, window=min(MAX_BATCHES, BATCHES_PER_BUCKET * len(steps)))


def describe_not_restored(count: int) -> Text:
    """Return the error of messages that have a copy, and were not there after they were written."""
    return ngettext_lazy("%(count)s could not be restored", "%(count)s could not be restored", count)


def _verify(steps: Sequence[UndoStep], pace: Pace) -> list[UndoStep]:
    wanted = {step: set(unpack_ids(step.restore_ids)) for step in steps}
    withdrawn_since = _withdrawn_of(wanted)
    for step, ids in withdrawn_since.items():
        _delete_withdrawn(step, sorted(ids), pace)
    live = _live_ids(wanted)
    missing = {step: wanted[step] - live[step] - withdrawn_since[step] for step in steps}
    has_copy = _copied_authors({step: ids for step, ids in missing.items() if ids})
    left = list(steps)
    if left[0].state == UndoStepState.RESTORED:
        left = move_steps(left, UndoStepState.VERIFIED)
    loads.clear_live_in(_keys(left))
    if left and left[0].state == UndoStepState.VERIFIED:
        left = move_steps(left, UndoStepState.CLOSED)
    own = {}
    for step in left:
        failed = len(missing[step].intersection(has_copy.get(step, ())))
        own[step] = {
            "failed_ids": pack_ids(sorted(missing[step])),
            "restored": len(wanted[step]) - len(missing[step]) - len(withdrawn_since[step]),
            "withdrawn": step.withdrawn + len(withdrawn_since[step]),
            "no_copy": len(missing[step]) - failed,
            "failed": failed,
            "error": describe_not_restored(failed) if failed else "",
        }
    restored = {step: wanted[step] - missing[step] for step in left}
    return _count(own, restored)


def _delete_withdrawn(step: UndoStep, ids: Sequence[int], pace: Pace) -> None:
    """Delete messages that their author withdrew during the undo, at the stamp they were restored with."""
    rows = scans.read_rows_with_writetime(step.channel_id, step.bucket, ids)
    stamps = ([(row[MESSAGE_ID], row[WRITETIME]) for row in page] for page in rows)
    note_deletes(step.channel_id, step.bucket, len(ids))
    deletes.delete_rows(step.channel_id, step.bucket, stamps, pace=pace)


def _count(counts: Mapping[UndoStep, Mapping[str, object]], restored: IdsOf) -> list[UndoStep]:
    """Count the steps, and store the ids that their purge no longer deletes. restored: including withdrawn ones."""
    if not counts:
        return []
    with brief_transaction():
        bump_version(next(iter(counts)).purge_id)
        counted = move_steps(
            list(counts),
            UndoStepState.COUNTED,
            each=counts,
            counted_at=postgres_now(),
            token=None,
            lease_until=None,
        )
        add_restored(counted)
        _note_undone(counted, restored)
    note_removals(step.channel_id for step in counted)
    return counted


def _note_undone(steps: Sequence[UndoStep], restored: IdsOf) -> None:
    by_ordinal = {step.ordinal: step for step in steps}
    found = Step.objects.filter(purge_id__in={step.purge_id for step in steps}, ordinal__in=by_ordinal)
    # Locked, because another undo of the same step may be counted at the same time.
    locked = found.order_by("ordinal").select_for_update().values_list("ordinal", "undone_ids")
    rows = []
    more: Counter[int] = Counter()
    for ordinal, undone_ids in locked:
        step = by_ordinal[ordinal]
        undone = {*unpack_ids(undone_ids), *unpack_ids(step.skipped_ids), *restored[step]}
        more[step.bucket] += len(undone) - count_packed(undone_ids)
        rows.append((pack_ids(sorted(undone)), step.purge_id, ordinal))
    if steps:
        add_undone(steps[0].purge_id, more)
    with connection.cursor() as cursor:
        cursor.executemany(
            f"UPDATE {Step._meta.db_table} SET undone_ids = %s WHERE purge_id = %s AND ordinal = %s", rows
        )
