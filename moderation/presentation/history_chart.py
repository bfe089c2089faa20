"""Days as small multiples: a line for each figure, with purges and repairs on the same axis.

Days and marks go in, coordinates and labels come out. A template draws them as SVG and as a table.
A day without a measurement is a gap in the line, never a zero.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from moderation.domain.axis_times import round_times
from moderation.presentation import formats

WIDTH, HEIGHT = 360, 150
LEFT, RIGHT, TOP, BOTTOM = 60, 8, 12, 34
"""Margins of the field of the lines. The marks and the dates are below it."""

_FIELD = HEIGHT - TOP - BOTTOM
MAX_ACTIONS_PER_DAY = 4
"""Marks of one day that the table lists."""

LAST_LABEL_SHARE = 0.95
"""Share of the axis up to which days have labels, which are centered below them."""

LARGEST_GAP_DAYS = 1
"""Days apart that a line joins; a missing day is a gap."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A purge or a repair. kind: "purge", "full repair" or "bucket repair". at: in UTC."""

    kind: str
    at: dt.datetime
    label: str


@dataclass(frozen=True, slots=True)
class DayFigures:
    """A day's figures, in the order of the panels; None: not measured."""

    day: dt.date
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Dot:
    """A measured day. left: where the day begins. is_alone: no line leads to it."""

    x: float
    left: float
    y: float
    title: str
    is_alone: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """A line across the field, with its label at the left."""

    y: float
    label: str
    is_limit: bool = False


@dataclass(frozen=True, slots=True)
class DrawnMark:
    """A mark on a panel's axis."""

    x: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure over the days. summary: the picture in a sentence, for screen readers."""

    title: str
    lines: Sequence[str]
    dots: Sequence[Dot]
    ticks: Sequence[Tick]
    summary: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """A day of the table: its figures, and its purges and repairs."""

    day: dt.date
    cells: Sequence[str]
    actions: Sequence[str]


@dataclass(frozen=True, slots=True)
class Chart:
    """The panels, with one time axis for all; rows: the same as a table, the latest first."""

    panels: Sequence[Panel]
    marks: Sequence[DrawnMark]
    dates: Sequence[tuple[float, str]]
    rows: Sequence[TableRow]
    first: dt.date
    last: dt.date
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM

    @property
    def days(self) -> int:
        """The number of days that it shows."""
        return (self.last - self.first).days + 1

    @property
    def day_width(self) -> float:
        """The width of a day."""
        return round((self.right - self.left) / self.days, 2)

    @property
    def is_empty(self) -> bool:
        """Return whether there is neither a measurement nor a mark."""
        return not self.rows

    @property
    def has_limit(self) -> bool:
        """Return whether a panel has a line from which on values are a finding."""
        return any(tick.is_limit for panel in self.panels for tick in panel.ticks)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the marks on it."""
        return sorted({mark.kind for mark in self.marks})


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of a panel. limit: values from here on are a finding; None: never."""

    title: str
    format_value: Callable[[float], str]
    limit: float | None = None
    is_log: bool = False


def draw_history(
    days: Sequence[DayFigures], marks: Sequence[Mark], scales: Sequence[Scale], *, first: dt.date, last: dt.date
) -> Chart:
    """Draw the days from `first` to `last` (both inclusive), without days and marks beyond. days: ascending."""
    shown = [day for day in days if first <= day.day <= last]
    actions = [mark for mark in marks if first <= mark.at.astimezone(dt.UTC).date() <= last]
    panels = [_draw_panel(shown, index, scale, first=first, last=last) for index, scale in enumerate(scales)]
    return Chart(
        panels=panels,
        marks=[DrawnMark(_x_of_time(mark.at, first, last), mark.kind, mark.label) for mark in actions],
        dates=_label_dates(first, last),
        rows=_list_rows(shown, actions, scales),
        first=first,
        last=last,
    )


def _draw_panel(days: Sequence[DayFigures], index: int, scale: Scale, *, first: dt.date, last: dt.date) -> Panel:
    points = [(day.day, value) for day in days if (value := day.values[index]) is not None]
    top = _top_of([value for _, value in points], scale)
    known = {day for day, _ in points}
    around = [dt.timedelta(days=n) for n in range(-LARGEST_GAP_DAYS, LARGEST_GAP_DAYS + 1) if n]
    dots = [
        Dot(
            _x(day, first, last),
            _left(day, first, last),
            _y(value, top, scale),
            _dot_title(day, scale.format_value(value)),
            is_alone=known.isdisjoint(day + gap for gap in around),
        )
        for day, value in points
    ]
    return Panel(scale.title, _join([day for day, _ in points], dots), dots, _ticks(top, scale), _sum_up(points, scale))


def _top_of(values: Sequence[float], scale: Scale) -> float:
    """Return the value at the top: a round one above the highest. A limit shows once a value reaches half of it."""
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


def _left(day: dt.date, first: dt.date, last: dt.date) -> float:
    return _at_share((day - first).days / ((last - first).days + 1))


def _x_of_time(time: dt.datetime, first: dt.date, last: dt.date) -> float:
    begin = dt.datetime.combine(first, dt.time(), tzinfo=dt.UTC)
    return _at_share((time - begin) / dt.timedelta(days=(last - first).days + 1))


def _at_share(share: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)


def _join(days: Sequence[dt.date], dots: Sequence[Dot]) -> list[str]:
    """Return the lines between consecutive days, as SVG's `points`."""
    lines: list[list[Dot]] = [[dots[0]]] if dots else []
    for (before, day), dot in zip(pairwise(days), dots[1:], strict=True):
        if (day - before).days > LARGEST_GAP_DAYS:
            lines.append([])
        lines[-1].append(dot)
    return [" ".join(f"{dot.x},{dot.y}" for dot in line) for line in lines if len(line) > 1]


def _ticks(top: float, scale: Scale) -> list[Tick]:
    values = _decades(top) if scale.is_log else [0.0, top]
    ticks = [Tick(_y(value, top, scale), _label(value, scale)) for value in values]
    if scale.limit is not None and scale.limit <= top:
        ticks = [tick for tick in ticks if abs(tick.y - _y(scale.limit, top, scale)) > 13]
        ticks.append(Tick(_y(scale.limit, top, scale), _label(scale.limit, scale), is_limit=True))
    return ticks


def _label(value: float, scale: Scale) -> str:
    return formats.trim_decimals(scale.format_value(value))


def _decades(top: float) -> list[float]:
    """Return 0, the top, and between them powers of ten that leave room for their labels."""
    powers = round(math.log10(top))
    step = max(1, math.ceil(powers / 3))
    return [0.0, *(10.0**power for power in range(powers, 0, -step))]


def _label_dates(first: dt.date, last: dt.date) -> list[tuple[float, str]]:
    """Label round days, as many as have room beside each other. Days are those of UTC, as they are measured."""
    start, end = (dt.datetime.combine(day, dt.time(), tzinfo=dt.UTC) for day in (first, last + dt.timedelta(days=1)))
    days = [time.date() for time in round_times(start, end, dt.UTC, last_share=LAST_LABEL_SHARE)]
    return [(_x(day, first, last), formats.format_axis_day(day)) for day in days]


def _sum_up(points: Sequence[tuple[dt.date, float]], scale: Scale) -> str:
    if not points:
        return _("Not measured on any day.")
    highest_on, highest = max(points, key=lambda point: point[1])
    last_on, last = points[-1]
    return ngettext(
        "Measured on %(count)s day. Highest: %(highest)s on %(highest_on)s. Last: %(last)s on %(last_on)s.",
        "Measured on %(count)s days. Highest: %(highest)s on %(highest_on)s. Last: %(last)s on %(last_on)s.",
        len(points),
    ) % {
        "count": len(points),
        "highest": scale.format_value(highest),
        "highest_on": formats.keep_together(_format_day(highest_on)),
        "last": scale.format_value(last),
        "last_on": formats.keep_together(_format_day(last_on)),
    }


def _dot_title(day: dt.date, value: str) -> str:
    return _("%(day)s: %(value)s") % {"day": _format_day(day), "value": value}


def _list_rows(days: Sequence[DayFigures], marks: Sequence[Mark], scales: Sequence[Scale]) -> list[TableRow]:
    figures = {day.day: day.values for day in days}
    actions: dict[dt.date, list[str]] = {}
    # Repairs run every night, so the purges are listed before them.
    for mark in sorted(marks, key=lambda mark: mark.kind == "full repair"):
        actions.setdefault(mark.at.astimezone(dt.UTC).date(), []).append(mark.label)
    nothing: tuple[float | None, ...] = (None,) * len(scales)
    return [
        TableRow(
            day,
            [_format_cell(value, scale) for value, scale in zip(figures.get(day, nothing), scales, strict=True)],
            _cut(actions.get(day, [])),
        )
        for day in sorted(figures.keys() | actions.keys(), reverse=True)
    ]


def _cut(label: Sequence[str]) -> list[str]:
    if len(label) <= MAX_ACTIONS_PER_DAY:
        return list(label)
    more = len(label) - MAX_ACTIONS_PER_DAY
    return [
        *label[:MAX_ACTIONS_PER_DAY],
        ngettext("and %(count)s more", "and %(count)s more", more) % {"count": formats.format_number(more)},
    ]


def _format_cell(value: float | None, scale: Scale) -> str:
    return _("not measured") if value is None else scale.format_value(value)


def _format_day(day: dt.date) -> str:
    return formats.format_day_of_month(day)
