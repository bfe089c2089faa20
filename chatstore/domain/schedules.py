"""When maintenance runs: five fields of cron in a time zone's own wall-clock time.

A slot is a moment on the wall clock, "02:30 on 29 March". The clock that is put forward
skips some, which are then due as soon as it goes on; the clock that is put back shows some
twice, and the first time counts. So a night has each of its slots once, whatever is done
to its clock.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from chatstore.domain.errors import BadInput

ZONE_LEEWAY = dt.timedelta(days=1)
"""No clock is ever put back or forward by more."""


@dataclass(frozen=True, slots=True)
class Slot:
    """wall: what the clock on the wall shows (no zone). at: when that is, in UTC."""

    wall: dt.datetime
    at: dt.datetime

    @property
    def key(self) -> str:
        """The slot's name: "2026-03-29T02:30"."""
        return self.wall.isoformat(timespec="minutes")


@dataclass(frozen=True, slots=True)
class Schedule:
    """cron: minute, hour, day of month, month, day of week. zone: a name as "Europe/Berlin".

    opens, closes: between which times of the day a run may be at work, past midnight when
    the second is the earlier one; both None: at any time. Raises `BadInput` for what means nothing.
    """

    cron: str
    zone: str
    opens: dt.time | None = None
    closes: dt.time | None = None

    def __post_init__(self) -> None:
        if (self.opens is None) != (self.closes is None):
            raise BadInput("Give both ends of the allowed hours, or neither.")
        if self.opens is not None and self.opens == self.closes:
            raise BadInput("The allowed hours end where they begin. Leave both empty to allow any time.")
        if len(self.cron.split()) != len(_FIELDS):
            raise BadInput(f"Give five fields: {', '.join(_FIELDS)}; “30 2 * * *” is every night at 02:30.")
        try:
            next(CronSim(self.cron, dt.datetime(2024, 1, 1)), None)  # noqa: DTZ001 - on the wall
        except CronSimError as error:
            raise BadInput(f"“{self.cron[:60]}” is no schedule: {error}.") from None
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise BadInput(f"There is no time zone “{self.zone[:60]}”. Write one like Europe/Berlin or UTC.") from None
        first = next(self.slots_after(dt.datetime(2024, 1, 1, tzinfo=dt.UTC)), None)
        if first is None:
            raise BadInput(f"“{self.cron}” never comes.")

    @property
    def words(self) -> str:
        """When it is due, as people say it: "at 02:30 every day"."""
        said = CronSim(self.cron, dt.datetime(2024, 1, 1)).explain()  # noqa: DTZ001 - on the wall
        return said[:1].lower() + said[1:]

    def slots_after(self, moment: dt.datetime) -> Iterator[Slot]:
        """The slots that are due after a moment, the first one first."""
        zone = ZoneInfo(self.zone)
        # A day early, since the clock may have been put back in between; what is past is left out.
        begin = (moment.astimezone(zone) - ZONE_LEEWAY).replace(tzinfo=None)
        for wall in CronSim(self.cron, begin):
            slot = Slot(wall, _instant_of(wall, zone))
            if slot.at > moment:
                yield slot

    def next_slots(self, moment: dt.datetime, count: int) -> list[Slot]:
        """So many slots after a moment."""
        return list(islice(self.slots_after(moment), count))

    def last_slot(self, moment: dt.datetime, *, since: dt.datetime) -> Slot | None:
        """The latest slot that is due by a moment, and after `since`."""
        last = None
        for slot in self.slots_after(since):
            if slot.at > moment:
                break
            last = slot
        return last

    def is_open(self, moment: dt.datetime) -> bool:
        """Whether a run may be at work then."""
        if self.opens is None or self.closes is None:
            return True
        wall = moment.astimezone(ZoneInfo(self.zone)).time()
        if self.opens < self.closes:
            return self.opens <= wall < self.closes
        return wall >= self.opens or wall < self.closes

    def closes_after(self, moment: dt.datetime) -> dt.datetime | None:
        """When the hours that are open at a moment end, in UTC; None: never."""
        if self.opens is None or self.closes is None:
            return None
        zone = ZoneInfo(self.zone)
        today = moment.astimezone(zone).date()
        ends = (_instant_of(dt.datetime.combine(today + dt.timedelta(days=n), self.closes), zone) for n in (0, 1, 2))
        return next(end for end in ends if end > moment)


_FIELDS = ("minute", "hour", "day of month", "month", "day of week")


def _instant_of(wall: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    """When a clock on the wall shows that for the first time; for what it skips, when it goes on."""
    before = wall.replace(tzinfo=zone, fold=0).astimezone(dt.UTC)
    if before.astimezone(zone).replace(tzinfo=None) == wall:
        return before
    # Skipped. PEP 495: fold 0 takes the offset of before the gap, fold 1 the one of after it;
    # the clock goes on somewhere between the two.
    low, high = sorted((before, wall.replace(tzinfo=zone, fold=1).astimezone(dt.UTC)))
    while high - low > dt.timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).replace(tzinfo=None) < wall:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)
