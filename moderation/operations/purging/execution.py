"""Second half of a step: from *stamped* to *counted*. The package describes the life of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from django.conf import settings

from chatstore.domain.buckets import BucketKey, bucket_ids
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.ledger.delete_log import note_sent_deletes
from chatstore.operations.ledger.refresh import PURGE_ESTIMATE, PURGE_SOURCE, note_whole_reads
from chatstore.store import figures
from chatstore.store.activity import note_removals
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.states import StepKind, StepState
from moderation.models import Step
from moderation.operations.purging.missing_survivors import report_missing, unexplained
from moderation.operations.purging.quarantine import QuarantinedStep, quarantine_key, require_stamp
from moderation.operations.purging.rewrite import queue_rewrite, rewrite_survivors
from moderation.operations.purging.verification import VerificationRead, verify_steps
from moderation.operations.steps.claiming import (
    StepLost,
    brief_transaction,
    bump_version,
    lock_claimed,
    lock_purge,
    move_steps,
    purge_state_checker,
)
from moderation.operations.steps.split import split_step
from moderation.operations.steps.sums import add_counted
from moderation.store import deletes
from moderation.store.pace import Pace
from moderation.store.quarantine import quarantined_writetimes

WRITTEN_AGAIN = _("written again after each deletion; if a retry fails too, ask an operator")
"""Error of messages that reappeared each time. Pages and `purge_show` have their number beside it."""

ROWS_PER_CHECK = 1_000
"""Rows deleted between two checks of the purge's state."""


def finish_steps(
    steps: Sequence[Step], *, pace: Pace, quarantined: Mapping[Step, QuarantinedStep] | None = None
) -> list[Step]:
    """*stamped* or any later state → *counted*; returns the steps that this worker counted.

    steps: of one purge and in the same state. quarantined: only from the worker that stamped the steps, because the
    statements sent by another worker are unknown. With it, a pause or a cancel returns steps to *pending* while their
    survivors are rewritten, since no delete was sent; and it splits off rows whose deletes were not sent yet. Raises
    `StepLost`, `StoreUnavailable`.
    """
    left = list(steps)
    check = purge_state_checker(left[0]) if quarantined is not None else _no_check
    if left and left[0].state == StepState.STAMPED:
        check_or_revert = partial(_check_or_revert, left, check)
        for step in left:
            survivor_rows = quarantined[step].survivor_rows if quarantined is not None else None
            rewrite_survivors(step, pace, survivor_rows=survivor_rows, check=check_or_revert)
        left = move_steps(left, StepState.REWRITTEN)
    if left and left[0].state == StepState.REWRITTEN:
        _send_deletes(left, quarantined, pace, check)
        left = move_steps(left, StepState.DELETED)
    if not left:
        return []
    # Steps that were taken over are read again: the worker that closes them must have read the buckets itself.
    verified = verify_steps(left, pace)
    left = list(verified)
    if left and left[0].state == StepState.DELETED:
        own = {step: {"failed_ids": pack_ids(verified[step].remaining)} for step in left}
        left = move_steps(left, StepState.VERIFIED, each=own)
    elif left:
        # Check that this worker still owns the steps: no transition since the reads has.
        left = move_steps(left, StepState(left[0].state))
    if left:
        _close_steps({step: verified[step] for step in left})
    if left and left[0].state == StepState.VERIFIED:
        left = move_steps(left, StepState.CLOSED)
    return _count_steps({step: verified[step] for step in left})


def _no_check() -> None:
    pass


def _check_or_revert(steps: Sequence[Step], check: Callable[[], None]) -> None:
    try:
        check()
    except StepLost:
        move_steps(steps, StepState.PENDING)
        raise


def _send_deletes(
    steps: Sequence[Step],
    quarantined: Mapping[Step, QuarantinedStep] | None,
    pace: Pace,
    check: Callable[[], None],
) -> None:
    for step in steps:
        if step.kind != StepKind.ROWS:
            _send_ranges(step, pace)
    row_steps = [step for step in steps if step.kind == StepKind.ROWS]
    if row_steps:
        _send_rows(row_steps, quarantined, pace, check)


def _send_ranges(step: Step, pace: Pace) -> None:
    channel_id, bucket = step.channel_id, step.bucket
    ranges = [(first, last) for first, last in step.ranges or ()]
    if ranges == [bucket_ids(bucket)]:
        deletes.drop_bucket(channel_id, bucket, stamp=require_stamp(step.delete_stamp))
    else:
        deletes.delete_ranges(channel_id, bucket, ranges, stamp=require_stamp(step.delete_stamp), pace=pace)


def _send_rows(
    steps: Sequence[Step],
    quarantined: Mapping[Step, QuarantinedStep] | None,
    pace: Pace,
    check: Callable[[], None],
) -> None:
    sent: dict[Step, set[int]] = {step: set() for step in steps}

    def rows_until_stopped() -> Iterator[tuple[BucketKey, Sequence[tuple[int, int]]]]:
        for step in steps:
            for rows in _writetimes(step, quarantined):
                check()
                sent[step].update(message_id for message_id, _ in rows)
                yield (step.channel_id, step.bucket), rows

    try:
        deletes.delete_rows_in(rows_until_stopped(), pace=pace)
    except StepLost:
        # All deletes that were sent have been answered; they are counted without the rest.
        with brief_transaction():
            lock_purge(steps[0].purge_id)
            for step in lock_claimed(steps):
                unsent = frozenset(unpack_ids(step.ids)).difference(sent[step], unpack_ids(step.gone_ids))
                if unsent:
                    split_step(step, sorted(unsent))


def _writetimes(step: Step, quarantined: Mapping[Step, QuarantinedStep] | None) -> Iterator[Sequence[tuple[int, int]]]:
    """Yield (message id, WRITETIME) of the quarantined rows; of another worker's step from the quarantine itself."""
    if quarantined is None:
        # The copies include rows that were split off: they belong to another step, which may be cancelled or held.
        own = frozenset(unpack_ids(step.ids))
        for copied in quarantined_writetimes(quarantine_key(step, require_stamp(step.read_stamp))):
            yield [(message_id, writetime) for message_id, writetime in copied if message_id in own]
        return
    rows = quarantined[step].writetimes
    for start in range(0, len(rows), ROWS_PER_CHECK):
        yield rows[start : start + ROWS_PER_CHECK]


def _close_steps(verified: Mapping[Step, VerificationRead]) -> None:
    """Write the results of the reads to the ledger, and their figures."""
    began_us = min(verification.read.began_us for verification in verified.values())
    by_bucket = {(step.channel_id, step.bucket): verification for step, verification in verified.items()}
    note_whole_reads({key: verification.read for key, verification in by_bucket.items()}, began_us=began_us)
    # Those that were deleted again were read later than the others.
    for time in {verification.read.measured_at for verification in verified.values()}:
        read = {key: one for key, one in by_bucket.items() if one.read.measured_at == time}
        found = {key: dict(one.read.figures) for key, one in read.items()}
        estimated: dict[BucketKey, dict[str, int]] = {}
        for key, one in read.items():
            (estimated.setdefault(key, {}) if one.is_estimate else found[key])["tombstones"] = one.tombstones
        figures.note_figures_in(found, source=PURGE_SOURCE, measured_at=time)
        figures.note_figures_in(estimated, source=PURGE_ESTIMATE, measured_at=time)


def _count_steps(verified: Mapping[Step, VerificationRead]) -> list[Step]:
    """Count steps; return those that this worker counted.

    Failed are the messages in this worker's own verification read; an earlier worker's may be outdated.
    """
    if not verified:
        return []
    lost = {step: unexplained(step, verification.missing) for step, verification in verified.items()}
    own = {step: _counts(step, verification) for step, verification in verified.items()}
    with brief_transaction():
        bump_version(next(iter(verified)).purge_id)
        counted = move_steps(
            list(verified),
            StepState.COUNTED,
            each=own,
            counted_at=postgres_now(),
            token=None,
            lease_until=None,
        )
        if not counted:
            return []
        add_counted(counted)
        note_sent_deletes(
            {(step.channel_id, step.bucket): _tombstones_written(step) + verified[step].again for step in counted},
            sent_by=max(verified[step].read.measured_at for step in counted),
        )
        for step in counted:
            report_missing(step, lost[step])
            if verified[step].tombstones > settings.PURGE_TOMBSTONE_BUDGET:
                queue_rewrite(step, now_ms=verified[step].read.began_us // 1_000)
    note_removals(step.channel_id for step in counted)
    return counted


def _counts(step: Step, verification: VerificationRead) -> dict[str, object]:
    failed = verification.remaining
    already_gone = frozenset(unpack_ids(step.gone_ids)).difference(failed)
    return {
        "failed_ids": pack_ids(failed),
        "deleted": step.count - len(already_gone) - len(failed),
        "already_gone": len(already_gone),
        "failed": len(failed),
        "error": WRITTEN_AGAIN if failed else "",
    }


def _tombstones_written(step: Step) -> int:
    """Return the tombstones that the step wrote: one for a row or a partition, two for a range."""
    if step.kind == StepKind.ROWS:
        return step.deleted
    ranges = [(first, last) for first, last in step.ranges or ()]
    return 1 if ranges == [bucket_ids(step.bucket)] else sum(1 if first == last else 2 for first, last in ranges)
