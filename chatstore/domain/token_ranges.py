"""Token ranges of Cassandra's ring: which of them repairs have covered, and since when.

A range is `(left, right)`, left excluded and right included; a range whose left is not below its right wraps around the
end of the ring. Ranges that were cut open there are called spans.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeVar

MIN_TOKEN, MAX_TOKEN = -(2**63), 2**63 - 1
"""The ends of Murmur3's ring. No partition has the lowest token."""

Range = tuple[int, int]
Owner = TypeVar("Owner", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Repaired:
    """A successful full repair: when it began, and the ranges that it covered."""

    began_at: dt.datetime
    ranges: tuple[Range, ...]

    def has(self, token: int) -> bool:
        """Return whether the partition of a token was repaired."""
        return any(left < token <= right for left, right in unwrap(self.ranges))


def unwrap(ranges: Iterable[Range]) -> list[Range]:
    """Return the ranges as spans, ascending."""
    spans: list[Range] = []
    for left, right in ranges:
        if left < right:
            spans.append((left, right))
        else:
            spans += [(left, MAX_TOKEN), (MIN_TOKEN - 1, right)]
    return sorted((left, right) for left, right in spans if left < right)


def primary_ranges(ring: Sequence[tuple[int, str]]) -> dict[str, list[Range]]:
    """Return the ranges that each node repairs with `-pr`: up to each of its tokens, from the token before it.

    ring: (token, node), ascending.
    """
    ranges: dict[str, list[Range]] = {}
    for number, (token, node) in enumerate(ring):
        ranges.setdefault(node, []).append((ring[number - 1][0], token))
    return ranges


def covered_since(
    wanted: Mapping[Owner, Sequence[Range]], repairs: Iterable[Repaired]
) -> dict[Owner, dt.datetime | None]:
    """Return, per owner of ranges, the start of the oldest repair needed to cover them all; None if they are not all
    covered.

    repairs: latest first; no more of them are consumed than needed.
    """
    spans = {owner: unwrap(ranges) for owner, ranges in wanted.items()}
    ring = _Ring(chain.from_iterable(spans.values()))
    for repaired in repairs:
        ring.cover(repaired)
        if ring.is_covered:
            break
    times = ring.covered_times()
    return {owner: times.oldest(own) for owner, own in spans.items()}


def covered_since_by_table(
    wanted: Mapping[Owner, Sequence[Range]], histories: Mapping[str, Iterable[Repaired]]
) -> dict[str, dict[Owner, dt.datetime | None]]:
    """Return `covered_since` of each table's repairs. Tables that the same commands repaired are computed once."""
    found: dict[str, dict[Owner, dt.datetime | None]] = {}
    consumed: list[Repaired] = []
    covered: dict[Owner, dt.datetime | None] = {}
    for table, history in histories.items():
        repairs = iter(history)
        head = list(islice(repairs, len(consumed)))
        # Of a history that left something uncovered, more may follow the part that is the same.
        if not covered or head != consumed or None in covered.values():
            consumed = []
            covered = covered_since(wanted, _record(chain(head, repairs), consumed))
        found[table] = dict(covered)
    return found


def _record(repairs: Iterable[Repaired], consumed: list[Repaired]) -> Iterator[Repaired]:
    for repaired in repairs:
        consumed.append(repaired)
        yield repaired


class _Ring:
    """Spans that are not covered yet, as two sorted lists of their ends, and the pieces that repairs have covered.

    A ring of thousands of ranges is cut by hundreds of repairs; each cut is found by bisection.
    """

    def __init__(self, spans: Iterable[Range]) -> None:
        self._lefts: list[int] = []
        self._rights: list[int] = []
        self._pieces: list[tuple[int, int, dt.datetime]] = []
        for left, right in sorted(spans):
            if self._rights and left <= self._rights[-1]:
                self._rights[-1] = max(self._rights[-1], right)
            else:
                self._lefts.append(left)
                self._rights.append(right)

    @property
    def is_covered(self) -> bool:
        return not self._lefts

    def cover(self, repaired: Repaired) -> None:
        """Cut the ranges of a repair out of what is not covered yet."""
        lefts, rights = self._lefts, self._rights
        for left, right in unwrap(repaired.ranges):
            touched = slice(bisect_right(rights, left), bisect_left(lefts, right))
            if touched.start >= touched.stop:
                continue
            first, last = lefts[touched.start], rights[touched.stop - 1]
            for begin, end in zip(lefts[touched], rights[touched], strict=True):
                self._pieces.append((max(begin, left), min(end, right), repaired.began_at))
            lefts[touched] = [first] * (first < left) + [right] * (right < last)
            rights[touched] = [left] * (first < left) + [last] * (right < last)

    def covered_times(self) -> _CoveredTimes:
        pieces = sorted(self._pieces)
        return _CoveredTimes([left for left, *_ in pieces], pieces)


@dataclass(frozen=True, slots=True)
class _CoveredTimes:
    """Covered pieces of the ring with the start of their latest repair, ascending. lefts: their left ends."""

    lefts: Sequence[int]
    pieces: Sequence[tuple[int, int, dt.datetime]]

    def oldest(self, spans: Sequence[Range]) -> dt.datetime | None:
        """Return the earliest time of all pieces of some spans; None if a part of the spans is not covered."""
        times: list[dt.datetime] = []
        for left, right in spans:
            at = left
            # The piece before may reach into the span.
            number = max(0, bisect_right(self.lefts, left) - 1)
            while number < len(self.pieces) and at < right:
                begin, end, began_at = self.pieces[number]
                if begin > at:
                    break
                number += 1
                if end > at:
                    at = end
                    times.append(began_at)
            if at < right:
                return None
        return min(times, default=None)


def parse_range(text: str) -> Range:
    """Parse a range as Cassandra formats it: "(-12,34]"."""
    left, right = text.strip("(]").split(",")
    return int(left), int(right)
