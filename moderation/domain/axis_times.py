"""Times of a time axis that get a tick: full hours, midnights, first days of months and years."""

from __future__ import annotations

import datetime as dt
from calendar import monthrange
from collections.abc import Iterator
from itertools import pairwise

MIN_SHARE = 0.2
"""Least distance of two ticks, as a share of the axis: a label has room in it on a phone."""

_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
_DAYS = (1, 2, 5, 10, 15)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)


def round_times(start: dt.datetime, end: dt.datetime, zone: dt.tzinfo, *, last_share: float = 0.8) -> list[dt.datetime]:
    """Return the finest round times of a time zone from `start` to `end` (exclusive) that leave room for labels.

    last_share: of the axis; there are ticks up to it, if any: a label that begins later would be cut.
    """
    length = end - start
    begin, stop = (time.astimezone(zone).replace(tzinfo=None) for time in (start, end))
    for wall_times in _steps(begin, stop, length):
        times = [time.replace(tzinfo=zone).astimezone(dt.UTC) for time in wall_times]
        # Wall times that are skipped where clocks are put forward are others when read back.
        times = [time for time, wall in zip(times, wall_times, strict=True) if _wall(time, zone) == wall]
        times = [time for time in times if start <= time < end]
        if all(after - before >= length * MIN_SHARE for before, after in pairwise(times)):
            return [time for time in times if time - start <= length * last_share] or times or [start]
    return [start]


def _wall(time: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    return time.astimezone(zone).replace(tzinfo=None)


def _steps(begin: dt.datetime, stop: dt.datetime, length: dt.timedelta) -> Iterator[list[dt.datetime]]:
    """Yield round wall times of ever longer steps. Steps of which far too many fit are left out."""
    shortest = length * MIN_SHARE / 2
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    for minutes in _MINUTES:
        step = dt.timedelta(minutes=minutes)
        if step >= shortest:
            first = midnight + (begin - midnight) // step * step
            yield [first + number * step for number in range((stop - first) // step + 1)]
    for days in _DAYS:
        if dt.timedelta(days=days) >= shortest:
            every = (midnight + dt.timedelta(days=number) for number in range((stop - midnight).days + 1))
            yield [day for day in every if _is_round(day, days)]
    for months in _MONTHS:
        if dt.timedelta(days=28 * months) >= shortest:
            first_month, last_month = (time.year * 12 + time.month - 1 for time in (begin, stop))
            numbers = range(first_month // months * months, last_month + 1, months)
            yield [dt.datetime(number // 12, number % 12 + 1, 1) for number in numbers if number >= 12]  # noqa: DTZ001


def _is_round(day: dt.datetime, step: int) -> bool:
    """Return whether a day is the first of its month, or some steps later without being close to the next first."""
    in_month = monthrange(day.year, day.month)[1]
    return (day.day - 1) % step == 0 and (day.day == 1 or day.day + step <= in_month + 2)
