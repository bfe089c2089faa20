"""First half of steps: the messages to delete are read, quarantined, read back, and planned.

`execution` continues from here; until then nothing is stamped and nothing was deleted.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.db.models import Q

from chatstore.domain.buckets import BucketKey, bucket_ids, is_sealed
from chatstore.domain.errors import ChatstoreError
from chatstore.domain.messages import MESSAGE_ID, VALUE_COLUMNS
from chatstore.domain.snowflakes import first_id_at
from chatstore.domain.texts import Text
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.coordination.clock import check_clock, postgres_now
from chatstore.operations.coordination.timestamps import issue_stamps
from chatstore.operations.ledger.delete_log import last_deletes
from chatstore.store import scans
from moderation.domain.chunks import PackedRows
from moderation.domain.holds import HeldRows, HoldCoverage, without
from moderation.domain.packing import unpack_ids
from moderation.domain.planner import RECENT_MS, BucketPlan, DeleteStrategy, RangePlan, ids_inside, plan_ranges
from moderation.domain.states import StepKind, StepState
from moderation.models import ManifestBucket, Purge, Step
from moderation.operations.holds import hold_coverage_of_steps
from moderation.operations.purging.rewrite import DENSE_RATIO
from moderation.operations.steps.claiming import (
    brief_transaction,
    check_not_stopped,
    check_still_running,
    move_steps,
    purge_state_checker,
)
from moderation.store.pace import Pace
from moderation.store.quarantine import QuarantineKey, WantedRows, quarantine_bucket, quarantine_rows

MAX_SURVIVOR_BYTES = 64 << 20
"""Bytes of packed survivor rows in one worker's memory. Beyond this, they are read a second time."""

NO_DELETES = RangePlan(DeleteStrategy.ROWS, (), 0)
"""Plan of a step all of whose messages are held."""

KNOWN_COLUMNS = frozenset({"channel_id", "bucket", "message_id", *VALUE_COLUMNS})


class PlanRejected(ChatstoreError):
    """The step must not run in the current situation, and a retry would not help. Nothing was deleted."""


@dataclass(frozen=True, slots=True)
class QuarantinedStep:
    """Result of quarantining a step, needed to continue. Lost in a crash, after which the step starts over.

    survivor_rows: the rows to keep, if the plan rewrites many of them. held: ids that a hold covers; hold_ids: the
    holds known when the step was read. writetimes: (message id, WRITETIME in µs) of the rows that a row step deletes.
    """

    already_gone: Sequence[int]
    plan: RangePlan
    tombstones: int
    survivor_rows: PackedRows | None = None
    held: Sequence[int] = ()
    hold_ids: frozenset[int] = frozenset()
    writetimes: Sequence[tuple[int, int]] = ()


def quarantine_steps(
    steps: Sequence[Step], *, pace: Pace, max_bytes: int = MAX_SURVIVOR_BYTES
) -> dict[Step, QuarantinedStep]:
    """*pending* → *quarantined*; returns the steps that this worker still has.

    steps: of one purge, each in another bucket. max_bytes: limit of `QuarantinedStep.survivor_rows` of all steps.
    Raises `PlanRejected`, `WriteRefused`, `StepLost`, `StoreUnavailable`.
    """
    check_clock()
    check_columns()
    with brief_transaction():
        check_still_running(steps[0])
        stamps = issue_stamps((step.channel_id, step.bucket) for step in steps)
        own = {step: {"read_stamp": stamps[step.channel_id, step.bucket]} for step in steps}
        claimed = move_steps(steps, StepState.QUARANTINING, each=own)
    coverage = hold_coverage_of_steps(claimed)
    # A rewrite deletes no messages, so holds don't matter.
    rewrites = [step for step in claimed if step.kind == StepKind.REWRITE]
    quarantined = {step: _plan_rewrite(step, unpack_ids(step.ids)) for step in rewrites}
    quarantined |= _quarantine_row_steps([step for step in claimed if step.kind == StepKind.ROWS], coverage)
    by_range = [step for step in claimed if step.kind not in (StepKind.ROWS, StepKind.REWRITE)]
    quarantined |= _quarantine_range_steps(by_range, coverage, pace, max_bytes)
    with brief_transaction():
        quarantined_at = postgres_now()
        _begin_undo_period(steps[0].purge_id, quarantined_at)
        moved = move_steps(claimed, StepState.QUARANTINED, quarantined_at=quarantined_at)
    return {step: quarantined[step] for step in moved}


def _begin_undo_period(purge_id: int, quarantined_at: dt.datetime) -> None:
    """Store when the purge's first copies were made. Locks the purge, as claims do, before its steps."""
    is_first = Q(quarantined_at=None) | Q(quarantined_at__gt=quarantined_at)
    Purge.objects.filter(is_first, id=purge_id).update(quarantined_at=quarantined_at)


def on_disk_at_us(step: Step) -> int:
    """Return when a range step's quarantined copies are on disk on every replica (µs); row steps need not wait."""
    if step.kind == StepKind.ROWS or step.quarantined_at is None:
        return 0
    kept_at = round(step.quarantined_at.timestamp() * 1_000_000)
    period_ms: int = settings.CASSANDRA["commitlog_sync_period_ms"]
    return kept_at + period_ms * 1_000


def check_columns() -> None:
    """Raise `PlanRejected` if messages have a column that would not be copied, as during a rolling deployment."""
    unknown = scans.read_columns() - KNOWN_COLUMNS
    if unknown:
        raise PlanRejected(describe_unknown_columns(unknown))


def describe_unknown_columns(columns: Iterable[str]) -> Text:
    """Return the error of messages that cannot be quarantined."""
    return _(
        "the messages table has columns that this version does not copy: %(columns)s", columns=tuple(sorted(columns))
    )


def quarantine_key(step: Step, attempt: int) -> QuarantineKey:
    return QuarantineKey(step.purge_id, step.channel_id, step.bucket, attempt)


def require_stamp(stamp: int | None) -> int:
    """Return a stamp that the step's state guarantees.

    A missing one means a corrupt row and must not be treated as 0.
    """
    if stamp is None:
        raise ValueError("the step has no stamp although its state requires one")
    return stamp


def _quarantine_row_steps(steps: Sequence[Step], coverage: Mapping[int, HoldCoverage]) -> dict[Step, QuarantinedStep]:
    ids = {step: unpack_ids(step.ids) for step in steps}
    wanted = {
        step: WantedRows(_read_key(step), ids[step], HeldRows(coverage[step.channel_id]))
        for step in steps
        if not coverage[step.channel_id].everything
    }
    if wanted:
        quarantine_rows(list(wanted.values()), before_each_page=purge_state_checker(steps[0]))
    plans = {step: _row_plan(ids[step], rows) for step, rows in wanted.items()}
    return plans | {step: _held_completely(step, coverage[step.channel_id]) for step in steps if step not in wanted}


def _row_plan(ids: Sequence[int], wanted: WantedRows) -> QuarantinedStep:
    found = {message_id for message_id, _, has_author in wanted.seen if has_author}
    held = sorted(wanted.held_rows.ids)
    return QuarantinedStep(
        already_gone=[message_id for message_id in without(ids, held) if message_id not in found],
        plan=RangePlan(DeleteStrategy.ROWS, (), len(wanted.seen)),
        tombstones=len(wanted.seen),
        held=held,
        hold_ids=wanted.held_rows.coverage.hold_ids,
        writetimes=[(message_id, writetime) for message_id, writetime, _ in wanted.seen],
    )


def _held_completely(step: Step, coverage: HoldCoverage) -> QuarantinedStep:
    return QuarantinedStep((), NO_DELETES, 0, held=unpack_ids(step.ids), hold_ids=coverage.hold_ids)


def _read_key(step: Step) -> QuarantineKey:
    return quarantine_key(step, require_stamp(step.read_stamp))


@dataclass(frozen=True, slots=True)
class _KnownBucket:
    """What is known of a bucket before it is read.

    tombstones: that the scan counted; None if this system has deleted there since. Counting again would make the read
    50 % more expensive. Deletes that were not recorded, by other programs, show up in the verification read: if the
    bucket is over its budget, a rewrite is queued.

    is_last: whether no other step of the purge still has to delete ids of the bucket. The ids of another step are
    survivors for this one: a range over the whole bucket would rewrite what the other step deletes. A step that
    completes during the read is no longer open afterwards, but its ids were read as survivors.
    """

    plan: BucketPlan
    survivors: int
    tombstones: int | None
    is_last: bool


def _known_buckets(steps: Sequence[Step]) -> dict[BucketKey, _KnownBucket]:
    """Return what is known of the steps' buckets: each step is of the same purge, and in another bucket."""
    purge = steps[0].purge
    keys = [(step.channel_id, step.bucket) for step in steps]
    deleted = last_deletes(keys)
    others = Step.objects.filter(purge_id=purge.pk).in_buckets(keys)
    others = others.exclude(ordinal__in=[step.ordinal for step in steps]).open().order_by()
    shared = set(others.values_list("channel_id", "bucket"))
    known = {}
    for seen in ManifestBucket.objects.filter(pk__in=[(purge.pk, *key) for key in keys]):
        key = seen.channel_id, seen.bucket
        plan = BucketPlan.from_json(seen.plan)
        is_unchanged = key not in deleted or deleted[key] < purge.created_at
        tombstones = plan.existing_tombstones if is_unchanged else None
        known[key] = _KnownBucket(plan, seen.survivors or 0, tombstones, is_last=key not in shared)
    return known


def _quarantine_range_steps(
    steps: Sequence[Step], coverage: Mapping[int, HoldCoverage], pace: Pace, max_bytes: int
) -> dict[Step, QuarantinedStep]:
    quarantined = {
        step: _held_completely(step, coverage[step.channel_id])
        for step in steps
        if coverage[step.channel_id].everything
    }
    others = [step for step in steps if step not in quarantined]
    known = _known_buckets(others) if others else {}
    for step in others:
        of_step = _quarantine_bucket(
            step, coverage[step.channel_id], known[step.channel_id, step.bucket], pace, max_bytes
        )
        max_bytes -= of_step.survivor_rows.size if of_step.survivor_rows is not None else 0
        quarantined[step] = of_step
    return quarantined


def _quarantine_bucket(
    step: Step, coverage: HoldCoverage, known: _KnownBucket, pace: Pace, max_bytes: int
) -> QuarantinedStep:
    ids, held_rows = unpack_ids(step.ids), HeldRows(coverage)
    # Buffer the survivors if enough of them have to be rewritten.
    survivor_rows = PackedRows(max_bytes) if known.plan.rewritten * DENSE_RATIO > known.survivors else None

    def before_each_page() -> None:
        check_not_stopped(step)
        pace.throttle()

    reading = quarantine_bucket(
        _read_key(step),
        ids,
        held_rows=held_rows,
        survivor_rows=survivor_rows,
        existing_tombstones=known.tombstones,
        before_each_page=before_each_page,
    )
    unheld = without(ids, held_rows.ids)
    held = sorted(held_rows.ids)
    if not unheld:
        return QuarantinedStep((), NO_DELETES, reading.tombstones, held=held, hold_ids=coverage.hold_ids)
    plan = plan_ranges(
        unheld,
        reading.survivors[::-1],
        existing_tombstones=reading.tombstones,
        sealed=is_sealed(step.bucket, now_ms=require_stamp(step.read_stamp) // 1_000) and known.is_last,
        budget=settings.PURGE_TOMBSTONE_BUDGET,
    )
    already_gone = [] if len(reading.found) == len(unheld) else sorted(frozenset(unheld).difference(reading.found))
    return QuarantinedStep(
        already_gone,
        plan,
        reading.tombstones + plan.tombstones,
        survivor_rows,
        held=held,
        hold_ids=coverage.hold_ids,
    )


def _plan_rewrite(step: Step, gone_before: Sequence[int]) -> QuarantinedStep:
    """Plan a rewrite: all live rows are kept, and the ranges are those that a purge deleted by row.

    If other deletes use up the bucket's budget, everything over an hour old becomes one range. The same applies to a
    manual rewrite, which has no ids, whatever the bucket's tombstone count.
    """
    pages = scans.read_all_ids(step.channel_id, step.bucket)
    survivors = [row[MESSAGE_ID] for page in pages for row in page][::-1]
    tombstones = pages.count_tombstones()
    matched = sorted(frozenset(gone_before).difference(survivors))
    budget: int = settings.PURGE_TOMBSTONE_BUDGET
    wanted = tombstones > 0 if not gone_before else tombstones > budget and bool(matched)
    if not wanted:
        return QuarantinedStep((), RangePlan(DeleteStrategy.REWRITE, (), 0), tombstones)
    # A range removes the row tombstones inside it; other tombstones can be anywhere.
    others = max(0, tombstones - len(matched))
    read_ms = require_stamp(step.read_stamp) // 1_000
    sealed = is_sealed(step.bucket, now_ms=read_ms)
    whole = bucket_ids(step.bucket)
    older = (whole[0], first_id_at(read_ms - RECENT_MS) - 1)
    if not gone_before and sealed:
        return QuarantinedStep((), RangePlan(DeleteStrategy.REWRITE, [whole], 1, survivors), 1)
    if not sealed and older[0] < older[1] and (others > budget or not gone_before):
        return QuarantinedStep((), RangePlan(DeleteStrategy.REWRITE, [older], 2, ids_inside(survivors, [older])), 2)
    if not matched:
        return QuarantinedStep((), RangePlan(DeleteStrategy.REWRITE, (), 0), tombstones)
    plan = plan_ranges(matched, survivors, existing_tombstones=others, sealed=sealed, budget=budget)
    return QuarantinedStep((), replace(plan, strategy=DeleteStrategy.REWRITE), plan.tombstones)
