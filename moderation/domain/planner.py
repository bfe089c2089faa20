"""Plans what a purge deletes in one bucket, by what it costs those who read there afterwards.

A row delete and a span of one id leave 1 tombstone, a longer span 2 (its two bounds), a
whole partition 1. Each read of the bucket steps over every one of them until gc_grace has
passed, so a bucket is planned against a budget of tombstones. Measured on Cassandra 5.0.8.

Three parts: *rows* (deleted one by one at their own write times, at once), *spans* (older
ids, by ranges or as the whole partition) and *later* (ids of the last hour that are too
many to delete by row; their spans are due when the hour is over).

Where the runs of matched ids are too many for the budget, they are joined across the gaps
with the fewest survivors, and the survivors inside are written again (*rewrite*).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from chatstore.domain.buckets import bucket_ids, bucket_of

ROWS_AT_MOST = 100
"""A bucket with up to this many matched ids is deleted by row: no clock and no disk to wait for."""

RECENT_MS = 3_600_000
"""Ids of the last hour go by row: a range stamped in the past could not reach all of them."""

Span = tuple[int, int]
"""First and last id, both inclusive, deleted by one statement."""


class Way(StrEnum):
    """How a part of a bucket is deleted."""

    ROWS = "rows"
    RANGES = "ranges"
    DROP = "drop"
    REWRITE = "rewrite"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """One part of a bucket: how many ids go which way, by how many statements, at what cost.

    rewritten: survivors that are written again.
    """

    way: Way
    count: int
    statements: int
    tombstones: int
    rewritten: int = 0


@dataclass(frozen=True, slots=True)
class BucketPlan:
    """What a purge would do in one bucket. standing: tombstones there before it."""

    parts: tuple[PlannedPart, ...]
    standing: int = 0

    @property
    def tombstones(self) -> int:
        """What the purge adds for every later read of the bucket to step over."""
        return sum(part.tombstones for part in self.parts)

    @property
    def rewritten(self) -> int:
        """How many survivors are written again."""
        return sum(part.rewritten for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads back."""
        parts = [[p.way.value, p.count, p.statements, p.tombstones, p.rewritten] for p in self.parts]
        return {"parts": parts, "standing": self.standing}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> BucketPlan:
        """From what `as_json` gave."""
        parts = tuple(PlannedPart(Way(way), *numbers) for way, *numbers in value["parts"])
        return cls(parts, value["standing"])


@dataclass(frozen=True, slots=True)
class SpanPlan:
    """The spans of one step. rewritten: survivors inside them. tombstones: what they leave."""

    way: Way
    spans: Sequence[Span]
    tombstones: int
    rewritten: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class BucketSplit:
    """The matched ids of a bucket by the way they go, ascending; together they are all of them."""

    rows: Sequence[int] = ()
    spans: Sequence[int] = ()
    later: Sequence[int] = ()
    plan: BucketPlan = BucketPlan(())


def find_runs(matched: Sequence[int], survivors: Sequence[int]) -> Iterator[Span]:
    """The maximal runs of matched ids with no survivor inside; both inputs ascending."""
    position, total = 0, len(matched)
    while position < total:
        cut = bisect_left(survivors, matched[position])
        end = bisect_left(matched, survivors[cut], position) if cut < len(survivors) else total
        yield matched[position], matched[end - 1]
        position = end


def join_runs(runs: Sequence[Span], survivors: Sequence[int], *, at_most: int) -> list[Span]:
    """The runs as at most so many spans, joined across the gaps with the fewest survivors.

    Gaps cost independently of each other, so taking the cheapest is the cheapest plan.
    """
    excess = len(runs) - at_most
    if excess <= 0:
        return list(runs)
    gaps = [
        bisect_left(survivors, after[0]) - bisect_right(survivors, before[1])
        for before, after in itertools.pairwise(runs)
    ]
    joined = set(sorted(range(len(gaps)), key=gaps.__getitem__)[:excess])
    spans: list[Span] = []
    for index, run in enumerate(runs):
        if index and index - 1 in joined:
            spans[-1] = spans[-1][0], run[1]
        else:
            spans.append(run)
    return spans


def cost_of_spans(spans: Sequence[Span]) -> int:
    """Tombstones that deleting the spans leaves: 1 for a single id, 2 for a longer one."""
    return sum(1 if first == last else 2 for first, last in spans)


def ids_inside(ids: Sequence[int], spans: Sequence[Span]) -> list[int]:
    """Those of the ascending ids that stand inside a span."""
    return [number for first, last in spans for number in ids[bisect_left(ids, first) : bisect_right(ids, last)]]


def split_recent(matched: Sequence[int], *, recent_from: int) -> tuple[Sequence[int], Sequence[int]]:
    """(older ids, ids of the last hour); `recent_from` is the lowest id of that hour."""
    cut = bisect_left(matched, recent_from)
    return matched[:cut], matched[cut:]


def plan_spans(
    matched: Sequence[int], survivors: Sequence[int], *, standing_tombstones: int, sealed: bool, budget: int
) -> SpanPlan:
    """How the matched ids of one bucket go by spans, so that it stays within its budget.

    matched: ascending, not empty. standing_tombstones: what a read of the bucket steps over
    already. sealed: whether a partition delete may be used.

    A sealed bucket that others' deletes have used up the budget of is deleted and written
    again as a whole, which takes their tombstones with it. An open one gets one span.
    """
    whole = bucket_ids(bucket_of(matched[0]))
    if sealed and not survivors:
        return SpanPlan(Way.DROP, [whole], 1)
    runs = list(find_runs(matched, survivors))
    room = budget - standing_tombstones
    if cost_of_spans(runs) <= room:
        return SpanPlan(Way.RANGES, runs, cost_of_spans(runs))
    if room < 2 and sealed:
        return SpanPlan(Way.REWRITE, [whole], 1, survivors)
    spans = join_runs(runs, survivors, at_most=max(1, room // 2))
    return SpanPlan(Way.REWRITE, spans, cost_of_spans(spans), ids_inside(survivors, spans))


def plan_bucket(
    matched: Sequence[int],
    survivors: Sequence[int],
    *,
    recent_from: int,
    standing_tombstones: int,
    sealed: bool,
    budget: int,
    later_from: int,
) -> BucketSplit:
    """Plans one bucket: older ids by spans, those of the last hour by row.

    matched, survivors: ids, ascending, none in both. recent_from: the lowest id of the
    last hour. later_from: tombstones in the bucket beyond which ids of the last hour wait
    for their hour to end; the newest go first, since they are what everybody sees.
    """
    room = max(0, budget - standing_tombstones)
    if len(matched) <= min(ROWS_AT_MOST, room):
        return _split(rows=matched, parts=[_rows_part(matched)], standing=standing_tombstones)
    older, recent = split_recent(matched, recent_from=recent_from)
    at_once = min(len(recent), max(0, later_from - standing_tombstones))
    later, rows = recent[: len(recent) - at_once], recent[len(recent) - at_once :]
    # Rows beyond the budget have a rewrite behind them, which takes their tombstones away.
    taken = standing_tombstones + (len(rows) if len(rows) <= room else 0)
    parts = [
        _spans_part(older, survivors, sealed=sealed and not recent, standing=taken, budget=budget),
        replace(_spans_part(later, survivors, sealed=False, standing=0, budget=budget), way=Way.LATER),
        _rows_part(rows),
    ]
    return _split(rows=rows, spans=older, later=later, parts=parts, standing=standing_tombstones)


def _spans_part(
    ids: Sequence[int], survivors: Sequence[int], *, sealed: bool, standing: int, budget: int
) -> PlannedPart:
    if not ids:
        return PlannedPart(Way.RANGES, 0, 0, 0)
    plan = plan_spans(ids, survivors, standing_tombstones=standing, sealed=sealed, budget=budget)
    return PlannedPart(plan.way, len(ids), len(plan.spans), plan.tombstones, len(plan.rewritten))


def _rows_part(ids: Sequence[int]) -> PlannedPart:
    return PlannedPart(Way.ROWS, len(ids), len(ids), len(ids))


def _split(*, parts: Iterable[PlannedPart], standing: int, **ids: Sequence[int]) -> BucketSplit:
    return BucketSplit(**ids, plan=BucketPlan(tuple(part for part in parts if part.count), standing))
