"""Windows of time from years down to an hour, divided into equal slots, and the messages of a purge in each slot."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class Zoom(StrEnum):
    """How much time a window shows. ALL: everything that the purge includes."""

    ALL = "all"
    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"


MINUTE, HOUR, DAY = dt.timedelta(minutes=1), dt.timedelta(hours=1), dt.timedelta(days=1)

_SLOTS = {Zoom.YEAR: 5 * DAY, Zoom.MONTH: 8 * HOUR, Zoom.DAY: 15 * MINUTE, Zoom.HOUR: MINUTE}

_SLOTS_OF_ALL = (
    *(number * MINUTE for number in (1, 5, 15)),
    *(number * HOUR for number in (1, 3, 8)),
    *(number * DAY for number in (1, 5, 10, 30, 90, 365)),
)
MAX_SLOTS = 100
MIN_SLOTS = 30
"""The window of ALL is never shorter than this many slots, so that a raid of a minute is one bar of many."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Window:
    """Time from `start` (inclusive) to `end` (exclusive), in slots of equal length; the last may be shorter."""

    zoom: Zoom
    start: dt.datetime
    end: dt.datetime
    slot: dt.timedelta

    @property
    def edges(self) -> list[dt.datetime]:
        """The beginnings of the slots, and the end of the last one."""
        count = -((self.start - self.end) // self.slot)
        return [*(self.start + number * self.slot for number in range(count)), self.end]


def window_of_all(first: dt.datetime, last: dt.datetime) -> Window:
    """Return the window that shows everything between two times, both inclusive."""
    start, end, slot = _fit_slots(first, last)
    missing = MIN_SLOTS - (end - start) // slot
    if missing > 0:
        start -= missing // 2 * slot
        end = start + MIN_SLOTS * slot
    return Window(Zoom.ALL, start, end, slot)


def window_until(first: dt.datetime, end: dt.datetime) -> Window:
    """Return the window from a time (inclusive) until another one (exclusive), of at least `MIN_SLOTS` minutes."""
    start, _, slot = _fit_slots(min(first, end - MIN_SLOTS * MINUTE), end)
    return Window(Zoom.ALL, start, end, slot)


def _fit_slots(first: dt.datetime, last: dt.datetime) -> tuple[dt.datetime, dt.datetime, dt.timedelta]:
    """Return start, end and length of the shortest slots of which few enough contain two times and all between."""
    for slot in _SLOTS_OF_ALL:
        start = _EPOCH + (first - _EPOCH) // slot * slot
        end = _EPOCH + ((last - _EPOCH) // slot + 1) * slot
        if (end - start) // slot <= MAX_SLOTS:
            break
    return start, end, slot


def window_at(zoom: Zoom, time: dt.datetime) -> Window:
    """Return the year, month, day or hour that contains a time, in the time zone of the time."""
    start = time.replace(minute=0, second=0, microsecond=0)
    if zoom is Zoom.HOUR:
        # Computed in UTC: an hour may occur twice where clocks are put back.
        return Window(zoom, start, start.astimezone(dt.UTC) + HOUR, _SLOTS[zoom])
    start = start.replace(hour=0)
    if zoom is Zoom.DAY:
        end = start + DAY
    elif zoom is Zoom.MONTH:
        start = start.replace(day=1)
        end = (start + 32 * DAY).replace(day=1)
    else:
        start = start.replace(month=1, day=1)
        end = start.replace(year=start.year + 1)
    # Local days may have 23 or 25 hours; slots are of equal length.
    return Window(zoom, start.astimezone(dt.UTC), end.astimezone(dt.UTC), _SLOTS[zoom])


def closer(zoom: Zoom, window: Window) -> Zoom:
    """Return the level to which a click on a slot leads: the next one that shows less than the window."""
    lengths = {Zoom.YEAR: 366 * DAY, Zoom.MONTH: 31 * DAY, Zoom.DAY: DAY, Zoom.HOUR: HOUR}
    levels = list(Zoom)
    for level in levels[levels.index(zoom) + 1 :]:
        if lengths[level] < window.end - window.start:
            return level
    return Zoom.HOUR


def count_in_slots(times: Sequence[int], edges: Sequence[int]) -> list[int]:
    """Return how many of some ascending numbers are in each slot. edges: the beginnings, and the end of the last."""
    places = [bisect_left(times, edge) for edge in edges]
    return [after - before for before, after in pairwise(places)]


def spread_evenly(count: int, first: int, last: int, edges: Sequence[int]) -> list[int]:
    """Estimate the same for numbers of which only the first and the last are known, as if they were spread evenly."""
    length = last - first + 1
    until = [min(max(edge - first, 0), length) * count // length for edge in edges]
    return [after - before for before, after in pairwise(until)]
