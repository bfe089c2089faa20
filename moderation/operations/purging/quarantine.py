"""First half of a step: the messages to delete are read, quarantined, read back, and planned.

`execution` continues from here; until then nothing is stamped and nothing was deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from chatstore.domain.buckets import bucket_ids, is_sealed
from chatstore.domain.errors import ChatstoreError
from chatstore.domain.messages import MESSAGE_ID, VALUE_COLUMNS
from chatstore.domain.snowflakes import first_id_at
from chatstore.operations.coordination.clock import check_clock, postgres_now
from chatstore.operations.coordination.timestamps import issue_stamp
from chatstore.operations.ledger.delete_log import last_delete
from chatstore.store import scans
from moderation.domain.chunks import PackedRows
from moderation.domain.holds import Cover, Spared, without
from moderation.domain.packing import unpack_ids
from moderation.domain.planner import RECENT_MS, BucketPlan, SpanPlan, Way, ids_inside, plan_spans
from moderation.domain.states import StepKind, StepState
from moderation.models import ManifestBucket, Step
from moderation.operations.holds import cover_of
from moderation.operations.purging.rewrite import THICK
from moderation.operations.steps.claiming import (
    brief_transaction,
    check_may_go_on,
    check_still_running,
    move_step,
    watch_purge,
)
from moderation.store.pace import Pace
from moderation.store.quarantine import Place, quarantine_bucket, quarantine_rows

STAYS_AT_MOST = 64 << 20
"""Bytes of packed survivor rows in one worker's memory. Beyond this, they are read a second time."""

NOTHING_GOES = SpanPlan(Way.ROWS, (), 0)
"""Plan of a step all of whose messages are held."""

KNOWN_COLUMNS = frozenset({"channel_id", "bucket", "message_id", *VALUE_COLUMNS})


class PlanRejected(ChatstoreError):
    """The step must not run in the current situation, and a retry would not help. Nothing was deleted."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Result of quarantining a step, needed to continue. Lost in a crash, after which the step starts over.

    survivor_rows: the rows to keep, if the plan rewrites many of them. held: ids that a hold covers; hold_ids: the
    holds known when the step was read.
    """

    gone: Sequence[int]
    plan: SpanPlan
    tombstones: int
    stays: PackedRows | None = None
    held: Sequence[int] = ()
    hold_ids: frozenset[int] = frozenset()


def quarantine_step(step: Step, *, pace: Pace, room: int = STAYS_AT_MOST) -> Kept:
    """*pending* → *quarantined*. Raises `PlanRejected`, `WriteRefused`, `StepLost`, `StoreUnavailable`.

    max_bytes: limit of `QuarantinedStep.survivor_rows`.
    """
    check_clock()
    check_columns()
    with brief_transaction():
        check_still_running(step.purge_id)
        stamp = issue_stamp(step.channel_id, step.bucket)
        move_step(step, StepState.QUARANTINING, read_stamp=stamp)
    ids = unpack_ids(step.ids)
    if step.kind == StepKind.REWRITE:
        # A rewrite deletes no messages, so holds don't matter.
        kept = _keep_nothing(step, ids)
    else:
        kept = _keep_unless_held(step, ids, cover_of(step.channel_id), pace, room)
    move_step(step, StepState.QUARANTINED, quarantined_at=postgres_now())
    return kept


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
        raise PlanRejected(
            f"the messages table has columns that this version does not copy: {', '.join(sorted(unknown))}"
        )


def place_of(step: Step, attempt: int) -> Place:
    return Place(step.purge_id, step.channel_id, step.bucket, attempt)


def stored(stamp: int | None) -> int:
    """Return a stamp that the step's state guarantees.

    A missing one means a corrupt row and must not be treated as 0.
    """
    if stamp is None:
        raise ValueError("the step has no stamp although its state requires one")
    return stamp


def _keep_unless_held(step: Step, ids: Sequence[int], cover: Cover, pace: Pace, room: int) -> Kept:
    if cover.everything:
        return Kept((), NOTHING_GOES, 0, held=ids, hold_ids=cover.hold_ids)
    spared = Spared(cover)
    by_row = step.kind == StepKind.ROWS
    kept = _keep_rows(step, ids, spared) if by_row else _keep_bucket(step, ids, spared, pace, room)
    return replace(kept, held=sorted(spared.ids), hold_ids=cover.hold_ids)


def _keep_rows(step: Step, ids: Sequence[int], spared: Spared) -> Kept:
    place = place_of(step, stored(step.read_stamp))
    seen = quarantine_rows(place, ids, spared=spared, before_each_page=watch_purge(step.purge_id))
    found = {message_id for message_id, _, has_author in seen if has_author}
    gone = [message_id for message_id in without(ids, spared.ids) if message_id not in found]
    return Kept(gone, SpanPlan(Way.ROWS, (), len(seen)), len(seen))


def _standing(step: Step, preview: BucketPlan) -> int | None:
    """Return the tombstones that the scan counted in the bucket; None if this system has deleted there since.

    Counting again would make the read 50 % more expensive. Deletes that were not recorded, by other programs, show up
    in the verification read: if the bucket is over its budget, a rewrite is queued.
    """
    last = last_delete(step.channel_id, step.bucket)
    return preview.standing if last is None or last < step.purge.created_at else None


def _is_alone(step: Step) -> bool:
    """Return whether no other step of the purge still has to delete ids of the bucket.

    The ids of another step are survivors for this one: a range over the whole bucket would rewrite what the other
    step deletes. Checked before the bucket is read: a step that completes during the read is no longer open
    afterwards, but its ids were read as survivors.
    """
    here = Step.objects.filter(purge_id=step.purge_id, channel_id=step.channel_id, bucket=step.bucket)
    return not here.exclude(ordinal=step.ordinal).open().exists()


def _keep_bucket(step: Step, ids: Sequence[int], spared: Spared, pace: Pace, room: int) -> Kept:
    place = place_of(step, stored(step.read_stamp))
    seen = ManifestBucket.objects.get(purge_id=step.purge_id, channel_id=step.channel_id, bucket=step.bucket)
    preview = BucketPlan.from_json(seen.plan)
    # Buffer the survivors if enough of them have to be rewritten.
    stays = PackedRows(room) if preview.rewritten * THICK > seen.survivors else None
    is_alone = _is_alone(step)

    def before_each_page() -> None:
        check_may_go_on(step.purge_id)
        pace.rest()

    reading = quarantine_bucket(
        place,
        ids,
        spared=spared,
        stays=stays,
        standing=_standing(step, preview),
        before_each_page=before_each_page,
    )
    going = without(ids, spared.ids)
    if not going:
        return Kept((), NOTHING_GOES, reading.tombstones)
    plan = plan_spans(
        going,
        reading.survivors[::-1],
        standing_tombstones=reading.tombstones,
        sealed=is_sealed(step.bucket, now_ms=stored(step.read_stamp) // 1_000) and is_alone,
        budget=settings.PURGE_TOMBSTONE_BUDGET,
    )
    gone = [] if len(reading.found) == len(going) else sorted(frozenset(going).difference(reading.found))
    return Kept(gone, plan, reading.tombstones + plan.tombstones, stays)


def _keep_nothing(step: Step, gone_before: Sequence[int]) -> Kept:
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
        return Kept((), SpanPlan(Way.REWRITE, (), 0), tombstones)
    # A range removes the row tombstones inside it; other tombstones can be anywhere.
    others = max(0, tombstones - len(matched))
    read_ms = stored(step.read_stamp) // 1_000
    sealed = is_sealed(step.bucket, now_ms=read_ms)
    whole = bucket_ids(step.bucket)
    span = (whole[0], first_id_at(read_ms - RECENT_MS) - 1)
    if not gone_before and sealed:
        return Kept((), SpanPlan(Way.REWRITE, [whole], 1, survivors), 1)
    if not sealed and span[0] < span[1] and (others > budget or not gone_before):
        return Kept((), SpanPlan(Way.REWRITE, [span], 2, ids_inside(survivors, [span])), 2)
    if not matched:
        return Kept((), SpanPlan(Way.REWRITE, (), 0), tombstones)
    plan = plan_spans(matched, survivors, standing_tombstones=others, sealed=sealed, budget=budget)
    return Kept((), replace(plan, way=Way.REWRITE), plan.tombstones)
