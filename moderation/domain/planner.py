"""Plans what a purge deletes in one bucket, by what it costs those who read there afterwards.

A row delete and a span of one id leave 1 tombstone, a longer span 2 (its two bounds), a
whole partition 1. Each read of the bucket steps over every one of them until gc_grace has
passed, so a bucket is planned against a budget of tombstones. Measured on Cassandra 5.0.8.

Three parts: *rows* (deleted one by one at their own write times, at once), *spans* (older
ids, by ranges or as the whole partition) and *later* (ids of the last hour that are too
many to delete by row; their spans are due when the hour is over).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

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
    LATER = "later"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """One part of a bucket: how many ids go which way, by how many statements, at what cost."""

    way: Way
    count: int
    statements: int
    tombstones: int


@dataclass(frozen=True, slots=True)
class BucketPlan:
    """What a purge would do in one bucket."""

    parts: tuple[PlannedPart, ...]

    @property
    def tombstones(self) -> int:
        """What the purge adds for every later read of the bucket to step over."""
        return sum(part.tombstones for part in self.parts if part.way is not Way.REFUSED)

    @property
    def refused(self) -> int:
        """How many ids cannot go yet, since the bucket would be left over its budget."""
        return sum(part.count for part in self.parts if part.way is Way.REFUSED)

    @property
    def going(self) -> int:
        """How many ids go, now or when their hour is over."""
        return sum(part.count for part in self.parts if part.way is not Way.REFUSED)

    def as_json(self) -> list[list[Any]]:
        """Lists that `from_json` reads back."""
        return [[part.way.value, part.count, part.statements, part.tombstones] for part in self.parts]

    @classmethod
    def from_json(cls, value: list[list[Any]]) -> BucketPlan:
        """From what `as_json` gave."""
        return cls(tuple(PlannedPart(Way(way), *numbers) for way, *numbers in value))


def find_runs(matched: Sequence[int], survivors: Sequence[int]) -> Iterator[Span]:
    """The maximal runs of matched ids with no survivor inside; both inputs ascending."""
    position, total = 0, len(matched)
    while position < total:
        cut = bisect_left(survivors, matched[position])
        end = bisect_left(matched, survivors[cut], position) if cut < len(survivors) else total
        yield matched[position], matched[end - 1]
        position = end


def cost_of_spans(spans: Sequence[Span]) -> int:
    """Tombstones that deleting the spans leaves: 1 for a single id, 2 for a longer one."""
    return sum(1 if first == last else 2 for first, last in spans)


def split_recent(matched: Sequence[int], *, recent_from: int) -> tuple[Sequence[int], Sequence[int]]:
    """(older ids, ids of the last hour); `recent_from` is the lowest id of that hour."""
    cut = bisect_left(matched, recent_from)
    return matched[:cut], matched[cut:]


@dataclass(frozen=True, slots=True)
class BucketSplit:
    """The matched ids of a bucket by the way they go, ascending; together they are all of them."""

    rows: Sequence[int] = ()
    spans: Sequence[int] = ()
    later: Sequence[int] = ()
    refused: Sequence[int] = ()
    plan: BucketPlan = BucketPlan(())


def plan_bucket(
    matched: Sequence[int],
    survivors: Sequence[int],
    *,
    recent_from: int,
    standing_tombstones: int,
    sealed: bool,
    budget: int,
) -> BucketSplit:
    """Plans one bucket: older ids by spans, those of the last hour by row while there is room.

    matched, survivors: ids, ascending, none in both. recent_from: the lowest id of the
    last hour. standing_tombstones: what a read of the bucket steps over already. sealed:
    whether a partition delete may be used. budget: tombstones a bucket may have afterwards.

    When the ids of the last hour find no room, the newest take half of what is left, since
    they are what everybody sees, and the others wait for their hour to end and go by spans
    in the other half. What would leave the bucket over its budget even so is refused.
    """
    room = max(0, budget - standing_tombstones)
    if len(matched) <= min(ROWS_AT_MOST, room):
        return _split(rows=matched, parts=[_rows_part(matched)])
    older, recent = split_recent(matched, recent_from=recent_from)
    now = _spans_part(older, survivors, whole=sealed and not survivors and not recent, room=room)
    spans, refused = (older, []) if now.way is not Way.REFUSED else ((), list(older))
    room -= now.tombstones if spans else 0
    at_once = len(recent) if len(recent) <= room else room // 2
    later, rows = recent[: len(recent) - at_once], recent[len(recent) - at_once :]
    waiting = _spans_part(later, survivors, whole=False, room=room - at_once)
    if waiting.way is Way.REFUSED:
        refused, later = [*refused, *later], ()
    else:
        waiting = replace(waiting, way=Way.LATER)
    parts = [now, waiting, _rows_part(rows)]
    return _split(rows=rows, spans=spans, later=later, refused=refused, parts=parts)


def plan_spans(
    matched: Sequence[int], survivors: Sequence[int], *, standing_tombstones: int, sealed: bool, budget: int
) -> tuple[Way, list[Span], int]:
    """What a spans step does with what its own read found: (way, spans, tombstones).

    `Way.REFUSED` with the spans it would have taken when the bucket would be left over budget.
    """
    if sealed and not survivors:
        return Way.DROP, [(matched[0], matched[-1])], 1
    spans = list(find_runs(matched, survivors))
    cost = cost_of_spans(spans)
    return (Way.RANGES if cost <= budget - standing_tombstones else Way.REFUSED), spans, cost


def _spans_part(ids: Sequence[int], survivors: Sequence[int], *, whole: bool, room: int) -> PlannedPart:
    if not ids:
        return PlannedPart(Way.RANGES, 0, 0, 0)
    way, spans, cost = plan_spans(ids, survivors, standing_tombstones=0, sealed=whole, budget=room)
    return PlannedPart(way, len(ids), len(spans), cost)


def _rows_part(ids: Sequence[int]) -> PlannedPart:
    return PlannedPart(Way.ROWS, len(ids), len(ids), len(ids))


def _split(*, parts: Iterable[PlannedPart], **ids: Sequence[int]) -> BucketSplit:
    return BucketSplit(**ids, plan=BucketPlan(tuple(part for part in parts if part.count)))
