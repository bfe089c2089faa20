"""Parsing of dates and times that users type, or copy from a page."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Sequence

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import MIN_ID, first_id_at, time_of, unix_ms
from chatstore.domain.texts import gettext_lazy as _

EARLIEST = time_of(MIN_ID) + dt.timedelta(seconds=1)
"""Earliest accepted time. Ids begin 2^41 ms before 2015, in 1945."""

# Accept relative times too; during a raid there is no time to convert to UTC.
_AGO = re.compile(
    r"(?:last )?([0-9]{1,5}) ?(s|min|h|d|w|seconds?|minutes?|hours?|days?|weeks?)(?: ago)?|(?:just )?now", re.IGNORECASE
)
_UNITS = {
    "s": dt.timedelta(seconds=1),
    "m": dt.timedelta(minutes=1),
    "h": dt.timedelta(hours=1),
    "d": dt.timedelta(days=1),
    "w": dt.timedelta(weeks=1),
}

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_WRITTEN = re.compile(
    r"""
    (?:(?P<word>today|yesterday)
      |(?:(?P<weekday>[a-z]{3,9}),?\ )?(?P<day>[0-9]{1,2})\ (?P<month>[a-z]{3,9})(?:\ (?P<year>[0-9]{4}))?
    )?
    (?:(?:^|,?\ (?:at\ )?)(?P<clock>[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?))?
    (?P<utc>\ UTC)?
    (?:\ \([^()]*\ UTC\))?
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Dates as pages write them in English, "11 Mar 2024, 15:02 (14:02 UTC)"; "yesterday 14:30", "11 March", "14:30"."""


def parse_datetime(text: str, *, now: dt.datetime) -> dt.datetime:
    """Parse a date or time: ISO 8601, as pages write it in English ("11 March 2024, 14:30"), or relative to now.

    It is in the time zone of `now`, unless it has its own. A date means its midnight, a time without a date the last
    one, and a date without a year the last one.

    Raises `BadInput` if the text is not a date, is in the future, or is earlier than the first possible id.
    """
    typed = " ".join(text.split())
    try:
        time = _parse(typed, now).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise BadInput(
            _(
                "“%(text)s” is not a valid date. Use a format like 2024-03-11, 11 March 2024, 14:30, yesterday 14:30 "
                "or “20 minutes ago”.",
                text=typed[:40],
            )
        ) from None
    if time > now:
        raise BadInput(_("%(time)s is in the future. Enter an earlier time.", time=typed[:40]))
    if time < EARLIEST:
        raise BadInput(_("%(time)s is before the first possible message. Enter a later time.", time=typed[:40]))
    return time


def first_id_from(time: dt.datetime) -> int:
    """Return the lowest id of a point in time: messages with lower ids were posted earlier."""
    return first_id_at(unix_ms(time))


def _parse(typed: str, now: dt.datetime) -> dt.datetime:
    """Return the time, with a time zone. Raises `ValueError` or `OverflowError`."""
    ago = _AGO.fullmatch(typed)
    if ago is not None:
        return now - int(ago[1]) * _UNITS[ago[2][0].lower()] if ago[1] else now
    written = _WRITTEN.fullmatch(typed)
    if written is not None and any(written.group("word", "day", "clock")):
        return _parse_written(written, now.astimezone(dt.UTC) if written["utc"] else now)
    time = dt.datetime.fromisoformat(typed)
    return time if time.tzinfo else time.replace(tzinfo=now.tzinfo)


def _parse_written(written: re.Match[str], now: dt.datetime) -> dt.datetime:
    hour, minute, second = map(int, f"{written['clock'] or '0:0'}:0".split(":")[:3])
    clock = dt.time(hour, minute, second)

    def at(day: dt.date) -> dt.datetime:
        return dt.datetime.combine(day, clock, now.tzinfo)

    if written["day"] is None:
        today = at(now.date())
        is_before = (written["word"] is None and today > now) or (written["word"] or "").lower() == "yesterday"
        return at(now.date() - dt.timedelta(days=1)) if is_before else today
    month, number = 1 + _index_of(written["month"], _MONTHS), int(written["day"])
    if written["year"] is not None:
        day = dt.date(int(written["year"]), month, number)
    else:
        # 29 February may be missing in either year.
        years = [year for year in (now.year, now.year - 1) if number <= calendar.monthrange(year, month)[1]]
        past = [day for day in (dt.date(year, month, number) for year in years) if at(day) <= now]
        if not past:
            raise ValueError(written[0])
        day = past[0]
    if written["weekday"] and _index_of(written["weekday"], _WEEKDAYS) != day.weekday():
        raise ValueError(written[0])
    return at(day)


def _index_of(name: str, names: Sequence[str]) -> int:
    """Return the index of a name in full or by its first three letters. Raises `ValueError`."""
    short = [full[:3] for full in names]
    return (names if name.lower() in names else short).index(name.lower())
