"""Ninety days as small multiples: a line for each figure, and what was done on the same axis.

Pure: days and marks go in, coordinates and words come out; a template draws them as SVG and
as a table. A day on which nothing was measured is a gap in the line, never a zero.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from chatstore.domain.health import say_bytes

WIDTH, HEIGHT = 360, 150
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 12, 34
"""The field of the lines lies inside; below it are the marks and the dates."""

_FIELD = HEIGHT - TOP - BOTTOM
DONE_AT_MOST = 4
"""Of what was done in a day, in the table."""

LARGEST_GAP_DAYS = 1
"""Days apart that are joined by a line: a day left out is a gap."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that was done: kind "purge", "full repair" or "bucket repair", when (UTC), in words."""

    kind: str
    at: dt.datetime
    words: str


@dataclass(frozen=True, slots=True)
class DayFigures:
    """A day's figures, in the order of the panels; None: not measured."""

    day: dt.date
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Dot:
    """A measured day."""

    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A line across the field, with its words at the left."""

    y: float
    words: str
    is_limit: bool = False


@dataclass(frozen=True, slots=True)
class DrawnMark:
    """A mark on a panel's axis."""

    x: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure over the days. summary: in a sentence, for who does not see the picture."""

    title: str
    lines: Sequence[str]
    dots: Sequence[Dot]
    ticks: Sequence[Tick]
    summary: str


@dataclass(frozen=True, slots=True)
class Row:
    """A day of the table: its figures and what was done, in words."""

    day: dt.date
    cells: Sequence[str]
    done: Sequence[str]


@dataclass(frozen=True, slots=True)
class Chart:
    """The panels, with one time axis for all; rows: the same as a table, the latest first."""

    panels: Sequence[Panel]
    marks: Sequence[DrawnMark]
    dates: Sequence[tuple[float, str]]
    rows: Sequence[Row]
    first: dt.date
    last: dt.date
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    floor: int = HEIGHT - BOTTOM

    @property
    def is_empty(self) -> bool:
        """Whether nothing was measured and nothing was done."""
        return not self.rows

    @property
    def kinds(self) -> list[str]:
        """The kinds of the marks on it."""
        return sorted({mark.kind for mark in self.marks})


@dataclass(frozen=True, slots=True)
class Scale:
    """What a panel shows. say: a value in words. limit: where it begins to need somebody; None: nowhere."""

    title: str
    say: Callable[[float], str]
    limit: float | None = None
    is_log: bool = False


def say_count(value: float) -> str:
    """1204.0 → "1,204"."""
    return f"{value:,.0f}"


def say_milliseconds(value: float) -> str:
    """2.41 → "2.4 ms", 812.0 → "812 ms", 0.0 → "0 ms"."""
    return f"{value:,.0f} ms" if value >= 99.95 or not value else f"{value:.1f} ms"


def say_size(value: float) -> str:
    """Bytes in decimal units."""
    return say_bytes(round(value))


def draw_history(
    days: Sequence[DayFigures], marks: Sequence[Mark], scales: Sequence[Scale], *, first: dt.date, last: dt.date
) -> Chart:
    """The days from `first` to `last` (both inclusive); days and marks beyond are left out. days: ascending."""
    shown = [day for day in days if first <= day.day <= last]
    done = [mark for mark in marks if first <= mark.at.astimezone(dt.UTC).date() <= last]
    panels = [_draw_panel(shown, index, scale, first=first, last=last) for index, scale in enumerate(scales)]
    return Chart(
        panels=panels,
        marks=[DrawnMark(_x_of_moment(mark.at, first, last), mark.kind, mark.words) for mark in done],
        dates=_label_dates(first, last),
        rows=_list_rows(shown, done, scales),
        first=first,
        last=last,
    )


def _draw_panel(days: Sequence[DayFigures], index: int, scale: Scale, *, first: dt.date, last: dt.date) -> Panel:
    points = [(day.day, value) for day in days if (value := day.values[index]) is not None]
    top = _top_of([value for _, value in points], scale)
    dots = [
        Dot(_x(day, first, last), _y(value, top, scale), f"{_say_day(day)}: {scale.say(value)}")
        for day, value in points
    ]
    return Panel(scale.title, _join([day for day, _ in points], dots), dots, _ticks(top, scale), _sum_up(points, scale))


def _top_of(values: Sequence[float], scale: Scale) -> float:
    """The value at the top: a round one over the highest; the limit is in sight once a value comes near it."""
    highest = max(values, default=0.0)
    if scale.limit is not None and highest * 2 >= scale.limit:
        highest = max(highest, scale.limit)
    if scale.is_log:
        return 10.0 ** max(1, math.ceil(math.log10(max(highest, 1.0) + 1e-9)))
    if highest <= 1:
        return 1.0
    step = 10.0 ** math.floor(math.log10(highest))
    return next(step * factor for factor in (1, 2, 5, 10) if step * factor >= highest)


def _y(value: float, top: float, scale: Scale) -> float:
    share = math.log1p(value) / math.log1p(top) if scale.is_log else value / top
    return round(TOP + _FIELD * (1 - min(max(share, 0.0), 1.0)), 1)


def _x(day: dt.date, first: dt.date, last: dt.date) -> float:
    return _at_share(((day - first).days + 0.5) / ((last - first).days + 1))


def _x_of_moment(moment: dt.datetime, first: dt.date, last: dt.date) -> float:
    begin = dt.datetime.combine(first, dt.time(), tzinfo=dt.UTC)
    return _at_share((moment - begin) / dt.timedelta(days=(last - first).days + 1))


def _at_share(share: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)


def _join(days: Sequence[dt.date], dots: Sequence[Dot]) -> list[str]:
    """The lines between days that follow each other, as SVG's `points`."""
    lines: list[list[Dot]] = [[dots[0]]] if dots else []
    for (before, day), dot in zip(pairwise(days), dots[1:], strict=True):
        if (day - before).days > LARGEST_GAP_DAYS:
            lines.append([])
        lines[-1].append(dot)
    return [" ".join(f"{dot.x},{dot.y}" for dot in line) for line in lines if len(line) > 1]


def _ticks(top: float, scale: Scale) -> list[Tick]:
    values = _decades(top) if scale.is_log else [0.0, top]
    ticks = [Tick(_y(value, top, scale), scale.say(value)) for value in values]
    if scale.limit is not None and scale.limit <= top:
        ticks = [tick for tick in ticks if abs(tick.y - _y(scale.limit, top, scale)) > 10]
        ticks.append(Tick(_y(scale.limit, top, scale), scale.say(scale.limit), is_limit=True))
    return ticks


def _decades(top: float) -> list[float]:
    """0, the top, and between them powers of ten that leave room for their words."""
    powers = round(math.log10(top))
    step = max(1, math.ceil(powers / 3))
    return [0.0, *(10.0**power for power in range(powers, 0, -step))]


def _label_dates(first: dt.date, last: dt.date) -> list[tuple[float, str]]:
    """The first of each month that has room beside the others."""
    days = [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]
    months = [day for day in days if day.day == 1 and (last - day).days > 8]
    return [(_x(day, first, last), f"1 {day:%b}") for day in months]


def _sum_up(points: Sequence[tuple[dt.date, float]], scale: Scale) -> str:
    if not points:
        return "Not measured on any day."
    highest_on, highest = max(points, key=lambda point: point[1])
    last_on, last = points[-1]
    return (
        f"Measured on {len(points)} day{'' if len(points) == 1 else 's'}. "
        f"Highest {scale.say(highest)} on {_say_day(highest_on)}; last {scale.say(last)} on {_say_day(last_on)}."
    )


def _list_rows(days: Sequence[DayFigures], marks: Sequence[Mark], scales: Sequence[Scale]) -> list[Row]:
    figures = {day.day: day.values for day in days}
    done: dict[dt.date, list[str]] = {}
    # Repairs are each night's; what people did comes before them.
    for mark in sorted(marks, key=lambda mark: mark.kind == "full repair"):
        done.setdefault(mark.at.astimezone(dt.UTC).date(), []).append(mark.words)
    nothing: tuple[float | None, ...] = (None,) * len(scales)
    return [
        Row(
            day,
            [_say_cell(value, scale) for value, scale in zip(figures.get(day, nothing), scales, strict=True)],
            _cut(done.get(day, [])),
        )
        for day in sorted(figures.keys() | done.keys(), reverse=True)
    ]


def _cut(words: Sequence[str]) -> list[str]:
    if len(words) <= DONE_AT_MOST:
        return list(words)
    return [*words[:DONE_AT_MOST], f"and {len(words) - DONE_AT_MOST:,} more"]


def _say_cell(value: float | None, scale: Scale) -> str:
    return "not measured" if value is None else scale.say(value)


def _say_day(day: dt.date) -> str:
    return f"{day.day} {day:%B}"
