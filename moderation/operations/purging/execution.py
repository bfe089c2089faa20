"""One step of a purge: a bucket's share of the manifest, from *pending* to *counted*.

What is never done: deleting what was not frozen; deleting before the quarantine was read
back and is on disk; sending a delete whose stamp is not stored on the step.

1. *quarantining*: a stamp R0 is issued, the bucket is read, the rows of the manifest are
   kept under R0 and read back. 2. *stamped*: T = R0 - 10 s, the spans and the survivors
   inside them are stored in one write. 3. *rewritten*: those survivors stand again at
   T + 1 µs, on every replica. 4. *deleted*: spans at T, rows at their own WRITETIME.
5. *verified*: what is still there is kept and deleted by row. 6. *closed*: the ledger says
   what lives. 7. *counted*: counts and audit in one transaction.

A crash before *stamped* leaves chunks that nobody names and a step that starts again; one
after it leaves a step that goes on with what was stored, and every statement of it may
have been sent before: with the same stamp it does nothing more.

Why T lies back: a range also reaches messages that the read did not see. What was written
after R0 - 10 s outlives it, and what of the manifest was, is found by the verifying read.
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
"""How often what came back is deleted again before it counts as failed."""


@dataclass(frozen=True, slots=True)
class LastLook:
    """The verifying read: what of the manifest is still there, and what the bucket holds.

    missing: ids that the step wrote again and that are not there. again: rows that earlier rounds of it deleted.
    """

    read: WholeRead
    remaining: Sequence[int]
    missing: Collection[int]
    tombstones: int
    again: int = 0


def stamp_step(step: Step, kept: Kept) -> None:
    """*quarantined* → *stamped*: what will be deleted, in one write, never computed again; *held* when nothing will.

    Raises what `quarantine_step` raises: a column, or a hold, may have come since the rows were kept.
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
    """Raises `LostStep` when a hold came since the read: the step begins anew, and knows of it."""
    if step.kind == StepKind.REWRITE:
        return
    take_turns_with_holds()
    if not cover_of(step.channel_id).hold_ids <= kept.hold_ids:
        raise LostStep(f"step {step.ordinal} of purge {step.purge_id}: something of it was held meanwhile")


def _hold_step(step: Step) -> None:
    """All of it is held: nothing goes."""
    move_step(step, StepState.HELD, held=step.count, counted_at=postgres_now(), token=None, lease_until=None)
    record_act("step_held", actor=None, purge=step.purge, channel_id=step.channel_id, details=_details(step))


def finish_step(step: Step, *, pace: Pace, kept: Kept | None = None) -> None:
    """*stamped* or any later state → *counted*. Raises `LostStep`, `StoreUnavailable`.

    kept: of who has stamped it himself, and nobody else, since what another worker has sent by then
    is not known. A pause or a cancel then takes the step back to *pending* while its survivors are
    written again, since no delete is out; and it parts rows that are not sent yet from those that are.
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
        # A taken-over step looks again: the reading that closes it must be its own.
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
    """A step before *stamped* that must not run: none of its messages was deleted."""
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
        # What was sent has been answered by now, and goes on to be counted without the rest.
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
        # Written or edited since the read: kept under an attempt of its own, then deleted by row.
        with brief_transaction():
            check_still_mine(step)
            attempt = issue_stamp(step.channel_id, step.bucket)
        seen = quarantine_rows(place_of(step, attempt), look.remaining)
        # Asked after the reading: had the step been taken over and counted before it, these
        # could be rows that an undo put back. What is taken over from here on was read in time.
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
            # A raid goes at once, whoever reads.
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
    """Failed is what this worker's own last look still found; an earlier worker's may be outdated."""
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
            error=f"{len(failed)} came back three times" if failed else "",
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
    """What the step itself wrote: a row or a partition is one, a range has two ends."""
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
