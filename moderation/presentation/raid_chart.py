"""Messages per minute as bars: those of the raid and those of everybody else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatstore.domain.milliseconds import MINUTE_MS

MAX_BARS = 60
HEIGHT = 48
BAR_WIDTH, SLOT_WIDTH = 7, 8


@dataclass(frozen=True, slots=True)
class Bar:
    """One or more minutes. x, raid_y, raid_height, other_y, other_height: in units of the drawing."""

    start_ms: int
    raid: int
    other: int
    x: int
    raid_y: float
    raid_height: float
    other_y: float
    other_height: float


@dataclass(frozen=True, slots=True)
class RaidChart:
    """Bars from the left, the raid's part below. minutes: that each bar stands for. most: messages of the tallest."""

    bars: Sequence[Bar]
    minutes: int
    most: int
    width: int
    height: int = HEIGHT
    bar_width: int = BAR_WIDTH


def draw_minutes(raid_ms: Iterable[int], other_ms: Iterable[int], *, start_ms: int, end_ms: int) -> RaidChart:
    """Return the bars from a time (inclusive) to another (exclusive), in Unix milliseconds."""
    minutes = max(-(-(end_ms - start_ms) // MINUTE_MS), 1)
    per_bar = -(-minutes // MAX_BARS)
    width_ms = per_bar * MINUTE_MS
    raid, other = (Counter((ms - start_ms) // width_ms for ms in times) for times in (raid_ms, other_ms))
    count = -(-minutes // per_bar)
    most = max(raid[number] + other[number] for number in range(count))
    scale = HEIGHT / most if most else 0.0
    bars = [
        _draw_bar(number, raid[number], other[number], start_ms + number * width_ms, scale) for number in range(count)
    ]
    return RaidChart(bars, per_bar, most, count * SLOT_WIDTH)


def _draw_bar(number: int, raid: int, other: int, start_ms: int, scale: float) -> Bar:
    raid_height, other_height = round(raid * scale, 2), round(other * scale, 2)
    raid_y = round(HEIGHT - raid_height, 2)
    return Bar(
        start_ms=start_ms,
        raid=raid,
        other=other,
        x=number * SLOT_WIDTH,
        raid_y=raid_y,
        raid_height=raid_height,
        other_y=round(raid_y - other_height, 2),
        other_height=other_height,
    )
