"""One step of a purge: one bucket's part of the manifest, from *pending* to *counted*.

Never done: deleting messages that were not frozen; deleting before the quarantine was read back and is on disk;
sending a delete whose stamp is not stored on the step.

1. *quarantining*: a stamp R0 is issued, the bucket is read, the rows of the manifest are quarantined under R0 and
   read back.
2. *stamped*: T = R0 - 10 s, the ranges and the survivors inside them are stored in one write.
3. *rewritten*: those survivors are written at T + 1 µs, on every replica.
4. *deleted*: ranges at T, rows at their own WRITETIME.
5. *verified*: messages that still exist are quarantined and deleted by row.
6. *closed*: the ledger is updated with the live ids.
7. *counted*: counts and audit in one transaction.

A crash before *stamped* leaves chunks that no step refers to, and a step that starts over. A crash after it leaves a
step that resumes with the stored values; every statement may have been sent before, and with the same stamp it has no
further effect.

T is in the past because a range also deletes messages that the read did not see. Writes after R0 - 10 s survive it,
and those of the manifest are found by the verification read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from django.conf import settings

from chatstore.domain.buckets import bucket_ids
from chatstore.domain.messages import MESSAGE_ID
from chatstore.domain.whole_reads import WholeRead
from chatstore.operations.coordination.clock import check_clock, postgres_now, stamp_now_us
from chatstore.operations.coordination.timestamps import issue_stamp
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.ledger.refresh import note_whole_read
from chatstore.store import figures, scans
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.states import StepKind, StepState
from moderation.models import Step
from moderation.operations.access.audit import record_act
from moderation.operations.holds import cover_of, take_turns_with_holds
from moderation.operations.purging.missing_survivors import tell_missing, unexplained
from moderation.operations.purging.quarantine import Kept, check_columns, place_of, stored
from moderation.operations.purging.rewrite import queue_rewrite, rewrite_survivors
from moderation.operations.steps.claiming import (
    LostStep,
    brief_transaction,
    check_still_mine,
    check_still_running,
    lock_purge,
    move_step,
    watch_purge,
)
from moderation.operations.steps.split import part_step
from moderation.store import deletes
from moderation.store.pace import Pace
from moderation.store.quarantine import kept_writetimes, quarantine_rows

VERIFY_ROUNDS = 3
"""Number of times that reappeared messages are deleted again before they count as failed."""


@dataclass(frozen=True, slots=True)
class LastLook:
    """Verification read: ids of the manifest that still exist, and the contents of the bucket.

    missing: ids that the step rewrote and that do not exist. again: number of rows that earlier attempts deleted
    again.
    """

    read: WholeRead
    remaining: Sequence[int]
    missing: Collection[int]
    tombstones: int
    again: int = 0


def stamp_step(step: Step, kept: Kept) -> None:
    """*quarantined* → *stamped*: store the deletes in one write; they are never computed again.

    *held* if all messages are held.

    Raises what `quarantine_step` raises: a column or a hold may have been added since the rows were read.
    """
    check_clock()
    check_columns()
    in_spans = step.kind != StepKind.ROWS
    with brief_transaction():
        check_still_running(step.purge_id)
        _check_holds(step, kept)
        if kept.held and len(kept.held) == step.count:
            _hold_step(step)
            return
        if kept.held:
            part_step(step, kept.held, kind=StepKind(step.kind), state=StepState.HELD)
        move_step(
            step,
            StepState.STAMPED,
            delete_stamp=stored(step.read_stamp) - settings.CLOCK_SKEW_SECONDS * 1_000_000 if in_spans else None,
            how=kept.plan.way.value,
            spans=[list(span) for span in kept.plan.spans] if in_spans else None,
            survivors=pack_ids(kept.plan.rewritten),
            gone_ids=pack_ids(kept.gone),
            tombstones=kept.tombstones,
        )


def _check_holds(step: Step, kept: Kept) -> None:
    """Raise `StepLost` if a hold was placed since the read: the step starts over and takes it into account."""
    if step.kind == StepKind.REWRITE:
        return
    take_turns_with_holds()
    if not cover_of(step.channel_id).hold_ids <= kept.hold_ids:
        raise LostStep(f"step {step.ordinal} of purge {step.purge_id}: a hold was placed meanwhile")


def _hold_step(step: Step) -> None:
    """Mark the step as held: all of its messages are, and none is deleted."""
    move_step(step, StepState.HELD, held=step.count, counted_at=postgres_now(), token=None, lease_until=None)
    record_act("step_held", actor=None, purge=step.purge, channel_id=step.channel_id, details=_details(step))


def finish_step(step: Step, *, pace: Pace, kept: Kept | None = None) -> None:
    """*stamped* or any later state → *counted*. Raises `StepLost`, `StoreUnavailable`.

    quarantined: only from the worker that stamped the step, because the statements sent by another worker are
    unknown. With it, a pause or a cancel returns the step to *pending* while its survivors are rewritten, since no
    delete was sent; and it splits off rows whose deletes were not sent yet.
    """
    look = watch_purge(step.purge_id) if kept is not None else _go_on
    if step.state == StepState.STAMPED:
        stays = kept.stays if kept is not None else None
        rewrite_survivors(step, pace, stays=stays, look=partial(_stop_unless_it_goes_on, step, look))
        move_step(step, StepState.REWRITTEN)
    if step.state == StepState.REWRITTEN:
        _send_deletes(step, pace, look)
        move_step(step, StepState.DELETED)
    if step.state in (StepState.DELETED, StepState.VERIFIED, StepState.CLOSED):
        # A step that was taken over is read again: the worker that closes it must have read it itself.
        last = _verify(step, pace)
        if step.state == StepState.DELETED:
            move_step(step, StepState.VERIFIED, failed_ids=pack_ids(last.remaining))
        _close(step, last)
        if step.state == StepState.VERIFIED:
            move_step(step, StepState.CLOSED)
        _count(step, last)


def _go_on() -> None:
    pass


def _stop_unless_it_goes_on(step: Step, look: Callable[[], None]) -> None:
    try:
        look()
    except LostStep:
        move_step(step, StepState.PENDING)
        raise


def fail_step(step: Step, reason: str) -> None:
    """Fail a step before *stamped* that must not run: none of its messages was deleted."""
    with brief_transaction():
        check_still_running(step.purge_id)
        move_step(
            step,
            StepState.FAILED,
            failed=step.count,
            failed_ids=step.ids,
            error=reason,
            counted_at=postgres_now(),
            token=None,
            lease_until=None,
        )
        record_act("step_failed", actor=None, purge=step.purge, channel_id=step.channel_id, details=_details(step))


def _send_deletes(step: Step, pace: Pace, look: Callable[[], None]) -> None:
    channel_id, bucket = step.channel_id, step.bucket
    if step.kind == StepKind.ROWS:
        _send_rows(step, pace, look)
        return
    spans = [(first, last) for first, last in step.spans or ()]
    if spans == [bucket_ids(bucket)]:
        deletes.drop_bucket(channel_id, bucket, stamp=stored(step.delete_stamp))
    else:
        deletes.delete_spans(channel_id, bucket, spans, stamp=stored(step.delete_stamp), pace=pace)


def _send_rows(step: Step, pace: Pace, look: Callable[[], None]) -> None:
    sent: set[int] = set()

    def until_stopped() -> Iterator[list[tuple[int, int]]]:
        for rows in kept_writetimes(place_of(step, stored(step.read_stamp))):
            look()
            sent.update(message_id for message_id, _ in rows)
            yield rows

    try:
        deletes.delete_rows(step.channel_id, step.bucket, until_stopped(), pace=pace)
    except LostStep:
        # All deletes that were sent have been answered; they are counted without the rest.
        unsent = frozenset(unpack_ids(step.ids)).difference(sent, unpack_ids(step.gone_ids))
        with brief_transaction():
            lock_purge(step.purge_id)
            check_still_mine(step)
            part_step(step, sorted(unsent))


def _verify(step: Step, pace: Pace) -> LastLook:
    ids: frozenset[int] = frozenset(unpack_ids(step.ids) if step.kind != StepKind.REWRITE else ())
    look = _look(step, ids, pace)
    for _ in range(VERIFY_ROUNDS):
        if not look.remaining:
            break
        # Written or edited since the read: quarantined under a separate attempt, then deleted by row.
        with brief_transaction():
            check_still_mine(step)
            attempt = issue_stamp(step.channel_id, step.bucket)
        seen = quarantine_rows(place_of(step, attempt), look.remaining)
        # Check after the read: if the step had been taken over and counted before it, these could be
        # rows that an undo restored. If it is taken over from here on, the rows were read in time.
        with brief_transaction():
            check_still_mine(step)
        deletes.delete_rows(
            step.channel_id, step.bucket, [[(message_id, writetime) for message_id, writetime, _ in seen]], pace=pace
        )
        look = replace(_look(step, ids, pace), again=look.again + len(seen))
    return look


def _look(step: Step, ids: frozenset[int], pace: Pace) -> LastLook:
    read = WholeRead(stamp_now_us())
    remaining: list[int] = []
    missing = set(unpack_ids(step.survivors))
    pages = scans.read_all_ids(step.channel_id, step.bucket)
    for page in pages:
        read.add(page)
        there = [row[MESSAGE_ID] for row in page]
        remaining.extend(ids.intersection(there))
        missing.difference_update(there)
        if step.kind != StepKind.ROWS:
            # Row steps are not throttled: a raid must be deleted immediately.
            pace.rest()
    return LastLook(read, sorted(remaining), missing, pages.count_tombstones())


def _close(step: Step, look: LastLook) -> None:
    note_whole_read(step.channel_id, step.bucket, look.read)
    figures.note_figures(
        step.channel_id,
        step.bucket,
        {**look.read.figures, "tombstones": look.tombstones},
        source="purge",
        measured_at=look.read.measured_at,
    )


def _count(step: Step, look: LastLook) -> None:
    """Count the step.

    Failed are the messages in this worker's own verification read; an earlier worker's may be outdated.
    """
    failed = look.remaining
    lost = unexplained(step, look.missing)
    gone = frozenset(unpack_ids(step.gone_ids)).difference(failed)
    with brief_transaction():
        move_step(
            step,
            StepState.COUNTED,
            failed_ids=pack_ids(failed),
            deleted=step.count - len(gone) - len(failed),
            already_gone=len(gone),
            failed=len(failed),
            error=f"{len(failed)} reappeared three times" if failed else "",
            counted_at=postgres_now(),
            token=None,
            lease_until=None,
        )
        note_deletes(step.channel_id, step.bucket, _tombstones_of(step) + look.again, sent_by=look.read.measured_at)
        record_act("step_counted", actor=None, purge=step.purge, channel_id=step.channel_id, details=_details(step))
        tell_missing(step, lost)
        if look.tombstones > settings.PURGE_TOMBSTONE_BUDGET:
            queue_rewrite(step, now_ms=look.read.began_us // 1_000)


def _tombstones_of(step: Step) -> int:
    """Return the tombstones that the step wrote: one for a row or a partition, two for a range."""
    if step.kind == StepKind.ROWS:
        return step.deleted
    spans = [(first, last) for first, last in step.spans or ()]
    return 1 if spans == [bucket_ids(step.bucket)] else sum(1 if first == last else 2 for first, last in spans)


def _details(step: Step) -> dict[str, object]:
    return {
        "ordinal": step.ordinal,
        "bucket": step.bucket,
        "how": step.how,
        "deleted": step.deleted,
        "already_gone": step.already_gone,
        "held": step.held,
        "failed": step.failed,
        **({"error": step.error} if step.error else {}),
    }
