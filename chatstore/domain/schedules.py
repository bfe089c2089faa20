"""Maintenance schedules: five fields of cron in the wall-clock time of a time zone.

A slot is a wall-clock time, "02:30 on 29 March". When the clock is set forward it skips some slots, which are then due
immediately after the gap; when it is set back it repeats some, and the first occurrence counts. So a night has each of
its slots exactly once, also on days of a DST change.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import Text, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _

FIELDS = 5

ZONE_LEEWAY = dt.timedelta(days=1)
"""No clock is ever set back or forward by more."""


_INVALID = {
    "Bad minute": _("minutes are 0–59"),
    "Bad hour": _("hours are 0–23"),
    "Bad day-of-month": _("days are 1–31, and the month must have them"),
    "Bad month": _("months are 1–12 or JAN–DEC"),
    "Bad day-of-week": _("days of the week are 0–7 or SUN–SAT"),
}
"""What is allowed, by the parser's error."""


class InvalidSchedule(BadInput):
    """A schedule is invalid. fields: those of `Schedule` that are wrong."""

    def __init__(self, text: str, *fields: str) -> None:
        super().__init__(text)
        self.fields = fields


@dataclass(frozen=True, slots=True)
class Slot:
    """wall: wall-clock time without a zone. at: the same in UTC."""

    wall: dt.datetime
    at: dt.datetime

    @property
    def key(self) -> str:
        """The slot's key: "2026-03-29T02:30"."""
        return self.wall.isoformat(timespec="minutes")


@dataclass(frozen=True, slots=True)
class Schedule:
    """cron: minute, hour, day of month, month, day of week. zone: a name such as "Europe/Berlin".

    opens, closes: the hours of the day in which a run may be active, past midnight if the second is the earlier one;
    both None: at any time. Raises `InvalidSchedule`.
    """

    cron: str
    zone: str
    opens: dt.time | None = None
    closes: dt.time | None = None

    def __post_init__(self) -> None:
        if (self.opens is None) != (self.closes is None):
            empty = "opens" if self.opens is None else "closes"
            raise InvalidSchedule(_("Enter both ends of the allowed hours, or neither."), empty)
        if self.opens is not None and self.opens == self.closes:
            raise InvalidSchedule(
                _("The allowed hours begin and end at the same time. Leave both empty to allow any time."),
                "opens",
                "closes",
            )
        if len(self.cron.split()) != FIELDS:
            raise InvalidSchedule(
                _(
                    "Enter five fields: minute, hour, day of month, month and day of week; "
                    "“30 2 * * *” is every night at 02:30."
                ),
                "cron",
            )
        try:
            next(CronSim(self.cron, dt.datetime(2024, 1, 1)), None)  # noqa: DTZ001 - wall-clock time
        except CronSimError as error:
            raise InvalidSchedule(
                _(
                    "“%(cron)s” is not a valid schedule: %(error)s.",
                    cron=self.cron[:60],
                    error=_INVALID.get(str(error), str(error)),
                ),
                "cron",
            ) from None
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise InvalidSchedule(
                _("Unknown time zone “%(zone)s”. Enter one such as Europe/Berlin or UTC.", zone=self.zone[:60]), "zone"
            ) from None
        first = next(self.slots_after(dt.datetime(2024, 1, 1, tzinfo=dt.UTC)), None)
        if first is None:
            raise InvalidSchedule(_("“%(cron)s” never occurs.", cron=self.cron), "cron")

    @property
    def description(self) -> str:
        """The schedule as text: "at 02:30 every day". Rare schedules are shown as their expression."""
        minute, hour, day, month, weekday = self.cron.split()
        any_hour = (hour, day, month, weekday) == ("*", "*", "*", "*")
        if any_hour and re.fullmatch(r"\*/\d+", minute):
            return ngettext_lazy("every %(count)s minute", "every %(count)s minutes", int(minute[2:]))
        if any_hour and minute.isdigit():
            return ngettext_lazy("%(count)s minute past every hour", "%(count)s minutes past every hour", int(minute))
        hours = _numbers(hour)
        if not (minute.isdigit() and hours and month == "*"):
            return _("by the cron expression %(cron)s", cron=self.cron)
        times = _join(tuple(dt.time(number, int(minute)) for number in hours))
        if (day, weekday) == ("*", "*"):
            return _("at %(times)s every day", times=times)
        if day == "*" and (weekdays := _weekdays(weekday)):
            return _("at %(times)s on %(weekdays)s", times=times, weekdays=weekdays)
        if day == "1" and weekday == "*":
            return _("at %(times)s on the first day of every month", times=times)
        if (days := _numbers(day)) and weekday == "*":
            return _("at %(times)s on these days of every month: %(days)s", times=times, days=days)
        return _("by the cron expression %(cron)s", cron=self.cron)

    def slots_after(self, when: dt.datetime) -> Iterator[Slot]:
        """Yield the slots that are due after a time, earliest first."""
        zone = ZoneInfo(self.zone)
        # Start a day early, since the clock may have been set back in between; past slots are left out.
        begin = (when.astimezone(zone) - ZONE_LEEWAY).replace(tzinfo=None)
        for wall in CronSim(self.cron, begin):
            slot = Slot(wall, _instant_of(wall, zone))
            if slot.at > when:
                yield slot

    def next_slots(self, when: dt.datetime, count: int) -> list[Slot]:
        """Return the next `count` slots after a time."""
        return list(islice(self.slots_after(when), count))

    def last_slot(self, when: dt.datetime, *, since: dt.datetime) -> Slot | None:
        """Return the latest slot that is due at a time, and after `since`."""
        last = None
        for slot in self.slots_after(since):
            if slot.at > when:
                break
            last = slot
        return last

    def is_open(self, when: dt.datetime) -> bool:
        """Return whether a run may be active at that time."""
        if self.opens is None or self.closes is None:
            return True
        wall = when.astimezone(ZoneInfo(self.zone)).time()
        if self.opens < self.closes:
            return self.opens <= wall < self.closes
        return wall >= self.opens or wall < self.closes

    def closes_after(self, when: dt.datetime) -> dt.datetime | None:
        """Return the end of the allowed hours that contain a time, in UTC; None if there is no limit."""
        if self.opens is None or self.closes is None:
            return None
        zone = ZoneInfo(self.zone)
        today = when.astimezone(zone).date()
        ends = (_instant_of(dt.datetime.combine(today + dt.timedelta(days=n), self.closes), zone) for n in (0, 1, 2))
        return next(end for end in ends if end > when)


WEEKDAYS = (
    _("Sunday"),
    _("Monday"),
    _("Tuesday"),
    _("Wednesday"),
    _("Thursday"),
    _("Friday"),
    _("Saturday"),
)
"""In cron's order; 7 is Sunday too."""


def _join(times: tuple[dt.time, ...]) -> dt.time | Text:
    """Return one time, or a list of them: "02:30, 08:30 and 14:30"."""
    return times[0] if len(times) == 1 else _("%(times)s and %(last)s", times=times[:-1], last=times[-1])


def _numbers(field: str) -> tuple[int, ...]:
    """Return the numbers of a field such as "2,14"; none if it has anything else."""
    parts = field.split(",")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdigit() for part in parts) else ()


def _weekdays(field: str) -> tuple[str, ...] | Text | None:
    """Return the days of a field such as "1,3" or "MON-FRI"; None if it has anything else."""
    ends = [_weekday(name) for name in re.split("[,-]", field)]
    days = tuple(WEEKDAYS[number % 7] for number in ends if number is not None)
    if len(days) < len(ends):
        return None
    if "-" not in field:
        return days
    return _("%(first)s through %(last)s", first=days[0], last=days[1]) if len(days) == 2 else None


def _weekday(name: str) -> int | None:
    names = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
    if name.upper() in names:
        return names.index(name.upper())
    return int(name) if len(name) == 1 and name.isascii() and name.isdigit() and name < "8" else None


def _instant_of(wall: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    """Return when a wall clock first shows the time; for a skipped time, when the gap ends."""
    before = wall.replace(tzinfo=zone, fold=0).astimezone(dt.UTC)
    if before.astimezone(zone).replace(tzinfo=None) == wall:
        return before
    # Skipped. PEP 495: fold 0 uses the offset before the gap, fold 1 the one after it;
    # the gap ends somewhere between the two.
    low, high = sorted((before, wall.replace(tzinfo=zone, fold=1).astimezone(dt.UTC)))
    while high - low > dt.timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).replace(tzinfo=None) < wall:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)
