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
from chatstore.domain.texts import ngettext_lazy
from chatstore.domain.whole_reads import WholeRead
from chatstore.operations.coordination.clock import check_clock, postgres_now, stamp_now_us
from chatstore.operations.coordination.timestamps import issue_stamp
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.ledger.refresh import PURGE_SOURCE, note_whole_read
from chatstore.store import figures, scans
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.states import StepKind, StepState
from moderation.models import Step
from moderation.operations.access.audit import record_action
from moderation.operations.holds import block_new_holds, hold_coverage
from moderation.operations.purging.missing_survivors import report_missing, unexplained
from moderation.operations.purging.quarantine import QuarantinedStep, check_columns, quarantine_key, require_stamp
from moderation.operations.purging.rewrite import queue_rewrite, rewrite_survivors
from moderation.operations.steps.claiming import (
    StepLost,
    brief_transaction,
    check_still_claimed,
    check_still_running,
    lock_purge,
    move_step,
    purge_state_checker,
)
from moderation.operations.steps.split import split_step
from moderation.store import deletes
from moderation.store.pace import Pace
from moderation.store.quarantine import quarantine_rows, quarantined_writetimes

VERIFY_ATTEMPTS = 3
"""Number of times that reappeared messages are deleted again before they count as failed."""


@dataclass(frozen=True, slots=True)
class VerificationRead:
    """Verification read: ids of the manifest that still exist, and the contents of the bucket.

    missing: ids that the step rewrote and that do not exist. again: number of rows that earlier attempts deleted
    again.
    """

    read: WholeRead
    remaining: Sequence[int]
    missing: Collection[int]
    tombstones: int
    again: int = 0


def stamp_step(step: Step, quarantined: QuarantinedStep) -> None:
    """*quarantined* → *stamped*: store the deletes in one write; they are never computed again.

    *held* if all messages are held.

    Raises what `quarantine_step` raises: a column or a hold may have been added since the rows were read.
    """
    check_clock()
    check_columns()
    by_ranges = step.kind != StepKind.ROWS
    with brief_transaction():
        check_still_running(step.purge_id)
        _check_holds(step, quarantined)
        if quarantined.held and len(quarantined.held) == step.count:
            _mark_held(step)
            return
        if quarantined.held:
            split_step(step, quarantined.held, kind=StepKind(step.kind), state=StepState.HELD)
        move_step(
            step,
            StepState.STAMPED,
            delete_stamp=require_stamp(step.read_stamp) - settings.CLOCK_SKEW_SECONDS * 1_000_000
            if by_ranges
            else None,
            strategy=quarantined.plan.strategy.value,
            ranges=[list(id_range) for id_range in quarantined.plan.ranges] if by_ranges else None,
            survivors=pack_ids(quarantined.plan.rewritten),
            gone_ids=pack_ids(quarantined.already_gone),
            tombstones=quarantined.tombstones,
        )


def _check_holds(step: Step, quarantined: QuarantinedStep) -> None:
    """Raise `StepLost` if a hold was placed since the read: the step starts over and takes it into account."""
    if step.kind == StepKind.REWRITE:
        return
    block_new_holds()
    if not hold_coverage(step.channel_id).hold_ids <= quarantined.hold_ids:
        raise StepLost(f"step {step.ordinal} of purge {step.purge_id}: a hold was placed meanwhile")


def _mark_held(step: Step) -> None:
    """Mark the step as held: all of its messages are, and none is deleted."""
    move_step(step, StepState.HELD, held=step.count, counted_at=postgres_now(), token=None, lease_until=None)
    record_action("step_held", actor=None, purge=step.purge, channel_id=step.channel_id, details=_details(step))


def finish_step(step: Step, *, pace: Pace, quarantined: QuarantinedStep | None = None) -> None:
    """*stamped* or any later state → *counted*. Raises `StepLost`, `StoreUnavailable`.

    quarantined: only from the worker that stamped the step, because the statements sent by another worker are
    unknown. With it, a pause or a cancel returns the step to *pending* while its survivors are rewritten, since no
    delete was sent; and it splits off rows whose deletes were not sent yet.
    """
    check = purge_state_checker(step.purge_id) if quarantined is not None else _no_check
    if step.state == StepState.STAMPED:
        survivor_rows = quarantined.survivor_rows if quarantined is not None else None
        rewrite_survivors(step, pace, survivor_rows=survivor_rows, check=partial(_check_or_revert, step, check))
        move_step(step, StepState.REWRITTEN)
    if step.state == StepState.REWRITTEN:
        _send_deletes(step, pace, check)
        move_step(step, StepState.DELETED)
    if step.state in (StepState.DELETED, StepState.VERIFIED, StepState.CLOSED):
        # A step that was taken over is read again: the worker that closes it must have read it itself.
        verification = _verify(step, pace)
        if step.state == StepState.DELETED:
            move_step(step, StepState.VERIFIED, failed_ids=pack_ids(verification.remaining))
        _close_step(step, verification)
        if step.state == StepState.VERIFIED:
            move_step(step, StepState.CLOSED)
        _count_step(step, verification)


def _no_check() -> None:
    pass


def _check_or_revert(step: Step, check: Callable[[], None]) -> None:
    try:
        check()
    except StepLost:
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
        record_action("step_failed", actor=None, purge=step.purge, channel_id=step.channel_id, details=_details(step))


def _send_deletes(step: Step, pace: Pace, check: Callable[[], None]) -> None:
    channel_id, bucket = step.channel_id, step.bucket
    if step.kind == StepKind.ROWS:
        _send_rows(step, pace, check)
        return
    ranges = [(first, last) for first, last in step.ranges or ()]
    if ranges == [bucket_ids(bucket)]:
        deletes.drop_bucket(channel_id, bucket, stamp=require_stamp(step.delete_stamp))
    else:
        deletes.delete_ranges(channel_id, bucket, ranges, stamp=require_stamp(step.delete_stamp), pace=pace)


def _send_rows(step: Step, pace: Pace, check: Callable[[], None]) -> None:
    sent: set[int] = set()

    def rows_until_stopped() -> Iterator[list[tuple[int, int]]]:
        for rows in quarantined_writetimes(quarantine_key(step, require_stamp(step.read_stamp))):
            check()
            sent.update(message_id for message_id, _ in rows)
            yield rows

    try:
        deletes.delete_rows(step.channel_id, step.bucket, rows_until_stopped(), pace=pace)
    except StepLost:
        # All deletes that were sent have been answered; they are counted without the rest.
        unsent = frozenset(unpack_ids(step.ids)).difference(sent, unpack_ids(step.gone_ids))
        with brief_transaction():
            lock_purge(step.purge_id)
            check_still_claimed(step)
            split_step(step, sorted(unsent))


def _verify(step: Step, pace: Pace) -> VerificationRead:
    ids: frozenset[int] = frozenset(unpack_ids(step.ids) if step.kind != StepKind.REWRITE else ())
    verification = _read_bucket(step, ids, pace)
    for _ in range(VERIFY_ATTEMPTS):
        if not verification.remaining:
            break
        # Written or edited since the read: quarantined under a separate attempt, then deleted by row.
        with brief_transaction():
            check_still_claimed(step)
            attempt = issue_stamp(step.channel_id, step.bucket)
        seen = quarantine_rows(quarantine_key(step, attempt), verification.remaining)
        # Check after the read: if the step had been taken over and counted before it, these could be
        # rows that an undo restored. If it is taken over from here on, the rows were read in time.
        with brief_transaction():
            check_still_claimed(step)
        deletes.delete_rows(
            step.channel_id, step.bucket, [[(message_id, writetime) for message_id, writetime, _ in seen]], pace=pace
        )
        verification = replace(_read_bucket(step, ids, pace), again=verification.again + len(seen))
    return verification


def _read_bucket(step: Step, ids: frozenset[int], pace: Pace) -> VerificationRead:
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
            pace.throttle()
    return VerificationRead(read, sorted(remaining), missing, pages.count_tombstones())


def _close_step(step: Step, verification: VerificationRead) -> None:
    note_whole_read(step.channel_id, step.bucket, verification.read)
    figures.note_figures(
        step.channel_id,
        step.bucket,
        {**verification.read.figures, "tombstones": verification.tombstones},
        source=PURGE_SOURCE,
        measured_at=verification.read.measured_at,
    )


def _count_step(step: Step, verification: VerificationRead) -> None:
    """Count the step.

    Failed are the messages in this worker's own verification read; an earlier worker's may be outdated.
    """
    failed = verification.remaining
    unexplained_ids = unexplained(step, verification.missing)
    already_gone = frozenset(unpack_ids(step.gone_ids)).difference(failed)
    with brief_transaction():
        move_step(
            step,
            StepState.COUNTED,
            failed_ids=pack_ids(failed),
            deleted=step.count - len(already_gone) - len(failed),
            already_gone=len(already_gone),
            failed=len(failed),
            error=ngettext_lazy("%(count)s reappeared three times", "%(count)s reappeared three times", len(failed))
            if failed
            else "",
            counted_at=postgres_now(),
            token=None,
            lease_until=None,
        )
        note_deletes(
            step.channel_id,
            step.bucket,
            _tombstones_written(step) + verification.again,
            sent_by=verification.read.measured_at,
        )
        record_action("step_counted", actor=None, purge=step.purge, channel_id=step.channel_id, details=_details(step))
        report_missing(step, unexplained_ids)
        if verification.tombstones > settings.PURGE_TOMBSTONE_BUDGET:
            queue_rewrite(step, now_ms=verification.read.began_us // 1_000)


def _tombstones_written(step: Step) -> int:
    """Return the tombstones that the step wrote: one for a row or a partition, two for a range."""
    if step.kind == StepKind.ROWS:
        return step.deleted
    ranges = [(first, last) for first, last in step.ranges or ()]
    return (
        1
        if ranges == [bucket_ids(step.bucket)]
        else sum(1 if first == verification else 2 for first, verification in ranges)
    )


def _details(step: Step) -> dict[str, object]:
    return {
        "ordinal": step.ordinal,
        "bucket": step.bucket,
        "strategy": step.strategy,
        "deleted": step.deleted,
        "already_gone": step.already_gone,
        "held": step.held,
        "failed": step.failed,
        **({"error": step.error} if step.error else {}),
    }
