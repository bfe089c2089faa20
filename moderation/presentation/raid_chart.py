"""Messages per minute as bars: those of the raid and those of everybody else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatstore.domain.milliseconds import MINUTE_MS

MAX_BARS = 60


@dataclass(frozen=True, slots=True)
class Bar:
    """One or more minutes, with the messages of the raid and the others."""

    start_ms: int
    raid: int
    other: int


@dataclass(frozen=True, slots=True)
class RaidChart:
    """Bars, the earliest first. minutes: that each stands for. most: messages of the tallest."""

    bars: Sequence[Bar]
    minutes: int
    most: int


def count_minutes(raid_ms: Iterable[int], other_ms: Iterable[int], *, start_ms: int, end_ms: int) -> RaidChart:
    """Return the bars from a time (inclusive) to another (exclusive), in Unix milliseconds."""
    minutes = max(-(-(end_ms - start_ms) // MINUTE_MS), 1)
    per_bar = -(-minutes // MAX_BARS)
    width_ms = per_bar * MINUTE_MS
    raid, other = (Counter((ms - start_ms) // width_ms for ms in times) for times in (raid_ms, other_ms))
    count = -(-minutes // per_bar)
    bars = [Bar(start_ms + number * width_ms, raid[number], other[number]) for number in range(count)]
    return RaidChart(bars, per_bar, max(bar.raid + bar.other for bar in bars))
