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
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Dates as pages write them in English, "11 Mar 2024, 15:02"; also "yesterday 14:30", "11 March", "14:30"."""

_WITH_UTC = re.compile(r"([^()]+) \(([^()]+) UTC\)", re.IGNORECASE)
"""A local time with UTC beside it: "11 Mar 2024, 15:02 (14:02 UTC)", "1 Mar 2024, 00:30 (29 Feb 2024, 23:30 UTC)"."""


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
    beside = _WITH_UTC.fullmatch(typed)
    if beside is not None:
        return _parse_utc(beside[1], beside[2], now.astimezone(dt.UTC))
    written = _WRITTEN.fullmatch(typed)
    if written is not None and any(written.group("word", "day", "clock")):
        return _parse_written(written, now.astimezone(dt.UTC) if written["utc"] else now)
    time = dt.datetime.fromisoformat(typed)
    return time if time.tzinfo else time.replace(tzinfo=now.tzinfo)


def _parse_utc(local: str, utc: str, now: dt.datetime) -> dt.datetime:
    """Return a time from its text in UTC, whose day is that of the local text if it has none of its own.

    The text may come from a page in another time zone, and a local time is repeated when the clocks are set back.
    """
    written, own = _WRITTEN.fullmatch(local), _WRITTEN.fullmatch(utc)
    if written is None or own is None or written["day"] is None or own["clock"] is None or own["word"] or own["utc"]:
        raise ValueError(local, utc)
    return _parse_written(own, now, day=_day_of(written if own["day"] is None else own, now))


def _parse_written(written: re.Match[str], now: dt.datetime, *, day: dt.date | None = None) -> dt.datetime:
    """Return the time in the zone of `now`. day: instead of the text's own."""
    hour, minute, second = map(int, f"{written['clock'] or '0:0'}:0".split(":")[:3])
    today = now.date()
    if day is None and written["day"] is not None:
        day = _day_of(written, now)
    if day is None and written["word"] is not None:
        day = today if written["word"].lower() == "today" else today - dt.timedelta(days=1)
    if day is not None:
        return dt.datetime.combine(day, dt.time(hour, minute, second), now.tzinfo)
    # The last one; the clock repeats an hour when it is set back.
    options = ((today, 1), (today, 0), (today - dt.timedelta(days=1), 0))
    times = (dt.datetime.combine(each, dt.time(hour, minute, second, fold=fold), now.tzinfo) for each, fold in options)
    return next(time for time in times if time.astimezone(dt.UTC) <= now.astimezone(dt.UTC))


def _day_of(written: re.Match[str], now: dt.datetime) -> dt.date:
    """Return the day that is written, of the last year in which it was if no year is. Raises `ValueError`."""
    month, number = 1 + _index_of(written["month"], _MONTHS), int(written["day"])
    if written["year"] is not None:
        day = dt.date(int(written["year"]), month, number)
    else:
        # 29 February may be missing in either year.
        years = [year for year in (now.year, now.year - 1) if number <= calendar.monthrange(year, month)[1]]
        past = [day for day in (dt.date(year, month, number) for year in years) if day <= now.date()]
        if not past:
            raise ValueError(written[0])
        day = past[0]
    if written["weekday"] and _index_of(written["weekday"], _WEEKDAYS) != day.weekday():
        raise ValueError(written[0])
    return day


def _index_of(name: str, names: Sequence[str]) -> int:
    """Return the index of a name in full or by its first three letters. Raises `ValueError`."""
    short = [full[:3] for full in names]
    return (names if name.lower() in names else short).index(name.lower())
