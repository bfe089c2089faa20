"""Planning of the deletes in one bucket by their cost for later reads.

A row delete and a range of one id leave 1 tombstone, a longer range 2 (its two bounds), a partition delete 1. Each
read of the bucket scans all of them until gc_grace has passed, so a bucket is planned against a budget of tombstones.
Measured on Cassandra 5.0.8.

Three parts: *rows* (deleted one by one at their own write times, immediately), *ranges* (older ids, by range deletes
or as the whole partition) and *later* (ids of the last hour that are too many to delete by row; their ranges are due
once all of them are over an hour old).

If the runs of matched ids exceed the budget, they are joined across the gaps with the fewest survivors, and the
survivors inside are rewritten (*rewrite*).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from chatstore.domain.buckets import bucket_ids, bucket_of
from chatstore.domain.milliseconds import HOUR_MS

MAX_ROW_DELETES = 100
"""A bucket with up to this many matched ids is deleted by row, without waiting for the clock or the disk."""

RECENT_MS = HOUR_MS
"""Ids of the last hour are deleted by row: a range stamped in the past could miss some of them."""

IdRange = tuple[int, int]
"""First and last id, both inclusive, deleted by one statement."""


class DeleteStrategy(StrEnum):
    """Method of deleting a part of a bucket."""

    ROWS = "rows"
    RANGES = "ranges"
    DROP = "drop"
    REWRITE = "rewrite"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """One part of a bucket: strategy, number of ids, number of statements, and cost in tombstones.

    rewritten: number of survivors that are rewritten.
    """

    strategy: DeleteStrategy
    count: int
    statements: int
    tombstones: int
    rewritten: int = 0


@dataclass(frozen=True, slots=True)
class BucketPlan:
    """Planned deletes of a purge in one bucket. existing_tombstones: tombstones there before the purge."""

    parts: tuple[PlannedPart, ...]
    existing_tombstones: int = 0

    @property
    def tombstones(self) -> int:
        """Tombstones that the purge adds to every later read of the bucket."""
        return sum(part.tombstones for part in self.parts)

    @property
    def rewritten(self) -> int:
        """Number of survivors that are rewritten."""
        return sum(part.rewritten for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object for `from_json`."""
        parts = [[p.strategy.value, p.count, p.statements, p.tombstones, p.rewritten] for p in self.parts]
        return {"parts": parts, "existing_tombstones": self.existing_tombstones}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> BucketPlan:
        """Restore a plan from the value that `as_json` returned."""
        parts = tuple(PlannedPart(DeleteStrategy(strategy), *numbers) for strategy, *numbers in value["parts"])
        return cls(parts, value["existing_tombstones"])


@dataclass(frozen=True, slots=True)
class RangePlan:
    """Ranges of one step. rewritten: survivors inside them. tombstones: number that they leave."""

    strategy: DeleteStrategy
    ranges: Sequence[IdRange]
    tombstones: int
    rewritten: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class BucketSplit:
    """Matched ids of a bucket by strategy, ascending. Together they are all of the matched ids."""

    rows: Sequence[int] = ()
    ranges: Sequence[int] = ()
    later: Sequence[int] = ()
    plan: BucketPlan = BucketPlan(())


def find_runs(matched: Sequence[int], survivors: Sequence[int]) -> Iterator[IdRange]:
    """Yield the maximal runs of matched ids with no survivor inside. Both inputs are ascending."""
    position, total = 0, len(matched)
    while position < total:
        cut = bisect_left(survivors, matched[position])
        end = bisect_left(matched, survivors[cut], position) if cut < len(survivors) else total
        yield matched[position], matched[end - 1]
        position = end


def join_runs(runs: Sequence[IdRange], survivors: Sequence[int], *, max_ranges: int) -> list[IdRange]:
    """Join the runs into at most `max_ranges` ranges, across the gaps with the fewest survivors.

    Gaps cost independently of each other, so joining across the cheapest gaps is the cheapest plan.
    """
    excess = len(runs) - max_ranges
    if excess <= 0:
        return list(runs)
    gaps = [
        bisect_left(survivors, after[0]) - bisect_right(survivors, before[1])
        for before, after in itertools.pairwise(runs)
    ]
    joined = set(sorted(range(len(gaps)), key=gaps.__getitem__)[:excess])
    ranges: list[IdRange] = []
    for index, run in enumerate(runs):
        if index and index - 1 in joined:
            ranges[-1] = ranges[-1][0], run[1]
        else:
            ranges.append(run)
    return ranges


def cost_of_ranges(ranges: Sequence[IdRange]) -> int:
    """Return the number of tombstones that deleting the ranges leaves: 1 for a single id, 2 for a longer range."""
    return sum(1 if first == last else 2 for first, last in ranges)


def ids_inside(ids: Sequence[int], ranges: Sequence[IdRange]) -> list[int]:
    """Return the ids that are inside a range. ids: ascending."""
    return [number for first, last in ranges for number in ids[bisect_left(ids, first) : bisect_right(ids, last)]]


def split_recent(matched: Sequence[int], *, recent_from: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return (older ids, ids of the last hour). recent_from: the lowest id of that hour."""
    cut = bisect_left(matched, recent_from)
    return matched[:cut], matched[cut:]


def plan_ranges(
    matched: Sequence[int], survivors: Sequence[int], *, existing_tombstones: int, sealed: bool, budget: int
) -> RangePlan:
    """Plan the ranges that delete the matched ids of one bucket within its tombstone budget.

    matched: ascending, not empty. existing_tombstones: tombstones that a read of the bucket already scans. sealed: a
    partition delete may be used.

    If other deletes have used up the budget of a sealed bucket, the whole partition is deleted and rewritten, which
    removes their tombstones too. An open bucket gets one range.
    """
    whole = bucket_ids(bucket_of(matched[0]))
    if sealed and not survivors:
        return RangePlan(DeleteStrategy.DROP, [whole], 1)
    runs = list(find_runs(matched, survivors))
    available = budget - existing_tombstones
    if cost_of_ranges(runs) <= available:
        return RangePlan(DeleteStrategy.RANGES, runs, cost_of_ranges(runs))
    if available < 2 and sealed:
        return RangePlan(DeleteStrategy.REWRITE, [whole], 1, survivors)
    ranges = join_runs(runs, survivors, max_ranges=max(1, available // 2))
    return RangePlan(DeleteStrategy.REWRITE, ranges, cost_of_ranges(ranges), ids_inside(survivors, ranges))


def plan_bucket(
    matched: Sequence[int],
    survivors: Sequence[int],
    *,
    recent_from: int,
    existing_tombstones: int,
    sealed: bool,
    budget: int,
    later_from: int,
) -> BucketSplit:
    """Plan one bucket: ranges for older ids, row deletes for ids of the last hour.

    matched, survivors: ids, ascending, disjoint. recent_from: the lowest id of the last hour. later_from: number of
    tombstones in the bucket beyond which ids of the last hour are deferred until their hour has passed. The newest
    are deleted first, because they are the most visible.
    """
    available = max(0, budget - existing_tombstones)
    if len(matched) <= min(MAX_ROW_DELETES, available):
        return _split(rows=matched, parts=[_rows_part(matched)], existing_tombstones=existing_tombstones)
    older, recent = split_recent(matched, recent_from=recent_from)
    at_once = min(len(recent), max(0, later_from - existing_tombstones))
    later, rows = recent[: len(recent) - at_once], recent[len(recent) - at_once :]
    # Row deletes beyond the budget are followed by a rewrite, which removes their tombstones.
    taken = existing_tombstones + (len(rows) if len(rows) <= available else 0)
    parts = [
        _ranges_part(older, survivors, sealed=sealed and not recent, existing_tombstones=taken, budget=budget),
        replace(
            _ranges_part(later, survivors, sealed=False, existing_tombstones=0, budget=budget),
            strategy=DeleteStrategy.LATER,
        ),
        _rows_part(rows),
    ]
    return _split(rows=rows, ranges=older, later=later, parts=parts, existing_tombstones=existing_tombstones)


def _ranges_part(
    ids: Sequence[int], survivors: Sequence[int], *, sealed: bool, existing_tombstones: int, budget: int
) -> PlannedPart:
    if not ids:
        return PlannedPart(DeleteStrategy.RANGES, 0, 0, 0)
    plan = plan_ranges(ids, survivors, existing_tombstones=existing_tombstones, sealed=sealed, budget=budget)
    return PlannedPart(plan.strategy, len(ids), len(plan.ranges), plan.tombstones, len(plan.rewritten))


def _rows_part(ids: Sequence[int]) -> PlannedPart:
    return PlannedPart(DeleteStrategy.ROWS, len(ids), len(ids), len(ids))


def _split(*, parts: Iterable[PlannedPart], existing_tombstones: int, **ids: Sequence[int]) -> BucketSplit:
    return BucketSplit(**ids, plan=BucketPlan(tuple(part for part in parts if part.count), existing_tombstones))
