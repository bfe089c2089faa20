"""Token ranges of Cassandra's ring: which of them repairs have covered, and since when.

A range is `(left, right)`, left excluded and right included; a range whose left is not below its right wraps around the
end of the ring. Ranges that were cut open there are called spans.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MIN_TOKEN, MAX_TOKEN = -(2**63), 2**63 - 1
"""The ends of Murmur3's ring. No partition has the lowest token."""

Range = tuple[int, int]


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


def subtract(spans: Sequence[Range], taken: Sequence[Range]) -> list[Range]:
    """Return the parts of ascending spans that other ascending spans do not cover."""
    left_over: list[Range] = []
    for begin, end in spans:
        at = begin
        for left, right in taken:
            if right <= at:
                continue
            if left >= end:
                break
            if left > at:
                left_over.append((at, left))
            at = max(at, right)
        if at < end:
            left_over.append((at, end))
    return left_over


def primary_ranges(ring: Sequence[tuple[int, str]]) -> dict[str, list[Range]]:
    """Return the ranges that each node repairs with `-pr`: up to each of its tokens, from the token before it.

    ring: (token, node), ascending.
    """
    ranges: dict[str, list[Range]] = {}
    for number, (token, node) in enumerate(ring):
        ranges.setdefault(node, []).append((ring[number - 1][0], token))
    return ranges


def covered_since(wanted: Mapping[str, Sequence[Range]], repairs: Iterable[Repaired]) -> dict[str, dt.datetime | None]:
    """Return, per node, the start of the oldest repair needed to cover all its ranges; None if they are not all
    covered.

    repairs: latest first; no more of them are consumed than needed.
    """
    open_spans = {node: unwrap(ranges) for node, ranges in wanted.items()}
    oldest: dict[str, dt.datetime] = {}
    for repaired in repairs:
        taken = unwrap(repaired.ranges)
        for node, spans in open_spans.items():
            left_over = subtract(spans, taken) if spans else []
            if left_over != spans:
                oldest[node] = min(oldest.get(node, repaired.began_at), repaired.began_at)
                open_spans[node] = left_over
        if not any(open_spans.values()):
            break
    return {node: None if open_spans[node] else oldest.get(node) for node in wanted}


def parse_range(text: str) -> Range:
    """Parse a range as Cassandra formats it: "(-12,34]"."""
    left, right = text.strip("(]").split(",")
    return int(left), int(right)
