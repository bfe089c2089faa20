"""Parsing of one day or time as people write it in English, or how long ago it was."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Sequence

_UNITS = {
    "s": dt.timedelta(seconds=1),
    "m": dt.timedelta(minutes=1),
    "h": dt.timedelta(hours=1),
    "d": dt.timedelta(days=1),
    "w": dt.timedelta(weeks=1),
}
_MONTHS_OF = {"month": 1, "year": 12}
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBERS = {"half a": 0.5, "half an": 0.5, "a": 1, "an": 1} | {word: 1 + at for at, word in enumerate(_WORDS)}

_UNIT = r"(?:s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)"
_DIGITS = r"[0-9]{1,5}(?:\.[0-9])?"
_WORD = rf"half an?|an?|{'|'.join(_WORDS)}"
_AMOUNT = rf"(?:(?:{_DIGITS}) ?|(?:{_WORD}) ){_UNIT}"
_LAST = r"(?:(?:(?:in|over|within) )?(?:the )?(?:last|past) )"
_AGO = re.compile(
    rf"{_LAST}?(?P<amounts>{_AMOUNT}(?:(?: and)? ?{_AMOUNT})*)(?: ago)?|{_LAST}(?P<unit>{_UNIT})"
    r"|(?P<now>(?:just |right )?now)",
    re.IGNORECASE,
)
_EACH = re.compile(rf"(?:(?P<number>{_DIGITS}) ?|(?P<word>{_WORD}) )(?P<unit>{_UNIT})", re.IGNORECASE)

_MONTHS_AGO = re.compile(
    rf"(?P<last>{_LAST})?(?P<number>[0-9]{{1,3}}|an?|{'|'.join(_WORDS)})? ?(?P<unit>month|year)s?(?: ago)?",
    re.IGNORECASE,
)
"""Months and years, whose lengths differ: "3 months ago", "last year"."""

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

_CLOCK = r"(?:[0-9]{1,2}[:h][0-9]{2}(?::[0-9]{2})?(?:\ ?[ap]m)?|[0-9]{1,2}\ ?[ap]m)"
_NUMBER = r"[0-9]{1,2}(?:st|nd|rd|th|\.)?"
_WRITTEN = re.compile(
    rf"""
    (?:(?P<word>today|(?P<before>(?:the\ )?day\ before\ )?yesterday)
      |(?P<last>last\ |on\ )?(?P<name>{"|".join(f"{name[:3]}(?:{name[3:]})?" for name in _WEEKDAYS)})
      |(?P<numbers>[0-9]{{1,2}}(?P<mark>[./])[0-9]{{1,2}}(?P=mark)[0-9]{{4}}|[0-9]{{4}}/[0-9]{{1,2}}/[0-9]{{1,2}})
      |(?:(?P<weekday>[a-z]{{3,9}}),?\ )?
       (?:(?P<day>{_NUMBER})\ (?:of\ )?(?P<month>[a-z]{{3,9}})|(?P<us_month>[a-z]{{3,9}})\ (?P<us_day>{_NUMBER}))
       (?:,?\ (?P<year>[0-9]{{4}}))?
    )?
    (?:(?:^|,?\ )(?:at\ )?(?P<clock>{_CLOCK}))?
    (?P<utc>\ UTC)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Dates as pages write them, "11 Mar 2024, 15:02", and as people do: "yesterday 14:30", "last Monday 2 pm"."""

_CLOCK_FIRST = re.compile(rf"(?:at )?(?P<clock>{_CLOCK}),? (?P<utc>UTC,? )?(?:on )?(?P<day>.+)", re.IGNORECASE)
"""The time before the day: "14:30 yesterday", "2 pm on Monday"."""

_UTC_BEHIND = re.compile(r"(.+) UTC", re.IGNORECASE)

_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_WITH_UTC = re.compile(r"([^()]+) \(([^()]+) UTC\)", re.IGNORECASE)
"""A local time with UTC beside it: "11 Mar 2024, 15:02 (14:02 UTC)", "1 Mar 2024, 00:30 (29 Feb 2024, 23:30 UTC)"."""


class AmbiguousDate(ValueError):
    """Two numbers of which either can be the month, such as 3/11/2024."""


def parse_ago(typed: str, now: dt.datetime) -> dt.datetime | None:
    """Return the time of "20 minutes ago", "last hour", "1 h 5 min", "3 months ago" or "just now"; None for others."""
    found = _AGO.fullmatch(typed)
    if found is None:
        return _parse_months_ago(typed, now)
    if found["now"]:
        return now
    if found["unit"]:
        return now - _UNITS[found["unit"][0].lower()]
    ago = dt.timedelta()
    for each in _EACH.finditer(found["amounts"]):
        number = float(each["number"]) if each["number"] else _NUMBERS[each["word"].lower()]
        ago += _UNITS[each["unit"][0].lower()] * number
    return now - ago


def _parse_months_ago(typed: str, now: dt.datetime) -> dt.datetime | None:
    found = _MONTHS_AGO.fullmatch(typed)
    if found is None or not (found["number"] or found["last"]):
        return None
    number = (found["number"] or "one").lower()
    count = int(_NUMBERS.get(number, number)) * _MONTHS_OF[found["unit"].lower()]
    year, month = divmod(now.year * 12 + now.month - 1 - count, 12)
    if year < dt.MINYEAR:
        raise OverflowError(typed)
    day = min(now.day, calendar.monthrange(year, month + 1)[1])
    return now.replace(year=year, month=month + 1, day=day)


def parse_written(typed: str, now: dt.datetime) -> dt.datetime:
    """Return a time that is written in words or in ISO 8601, in the zone of `now` unless UTC or another is beside it.

    Raises `ValueError` for other texts, `OverflowError`.
    """
    beside = _WITH_UTC.fullmatch(typed)
    if beside is not None:
        return _parse_utc(beside[1], beside[2], now.astimezone(dt.UTC))
    written = _WRITTEN.fullmatch(typed)
    if written is not None and (_names_day(written) or written["clock"]):
        return _to_time(written, now.astimezone(dt.UTC) if written["utc"] else now)
    turned = _CLOCK_FIRST.fullmatch(typed)
    if turned is not None:
        utc = " UTC" if turned["utc"] else ""
        written = _WRITTEN.fullmatch(f"{turned['day']} {turned['clock']}{utc}")
        if written is not None and _names_day(written):
            return _to_time(written, now.astimezone(dt.UTC) if utc else now)
    in_utc = _UTC_BEHIND.fullmatch(typed)
    time = dt.datetime.fromisoformat(in_utc[1] if in_utc else typed)
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC if in_utc else now.tzinfo)


def is_day(typed: str) -> bool:
    """Return whether a text names a day without a time."""
    written = _WRITTEN.fullmatch(typed)
    return _ISO_DAY.fullmatch(typed) is not None or (
        written is not None and _names_day(written) and written["clock"] is None
    )


def parse_month(typed: str, now: dt.datetime) -> dt.datetime | None:
    """Return the beginning of "March 2024"; None for other texts."""
    name, _, year = typed.partition(" ")
    if not year.isascii() or not year.isdigit() or len(year) != 4:
        return None
    try:
        return dt.datetime(int(year), 1 + _index_of(name, _MONTHS), 1, tzinfo=now.tzinfo)
    except ValueError:
        return None


def _names_day(written: re.Match[str]) -> bool:
    return any(written.group("word", "name", "numbers", "day", "us_day"))


def _parse_utc(local: str, utc: str, now: dt.datetime) -> dt.datetime:
    """Return a time from its text in UTC, whose day is that of the local text if it has none of its own.

    The text may come from a page in another time zone, and a local time is repeated when the clocks are set back.
    """
    written, own = _WRITTEN.fullmatch(local), _WRITTEN.fullmatch(utc)
    if written is None or own is None or written["day"] is None or own["clock"] is None or own["word"] or own["utc"]:
        raise ValueError(local, utc)
    return _to_time(own, now, day=_day_of(own if _names_day(own) else written, now))


def _to_time(written: re.Match[str], now: dt.datetime, *, day: dt.date | None = None) -> dt.datetime:
    """Return the time in the zone of `now`. day: instead of the text's own."""
    clock = _clock_of(written["clock"])
    if day is None and _names_day(written):
        day = _day_of(written, now)
    if day is not None:
        return dt.datetime.combine(day, clock, now.tzinfo)
    # The last one; the clock repeats an hour when it is set back.
    today = now.date()
    options = ((today, 1), (today, 0), (today - dt.timedelta(days=1), 0))
    times = (dt.datetime.combine(each, clock.replace(fold=fold), now.tzinfo) for each, fold in options)
    return next(time for time in times if time.astimezone(dt.UTC) <= now.astimezone(dt.UTC))


def _clock_of(text: str | None) -> dt.time:
    """Return a time of day; midnight if there is none. Raises `ValueError`."""
    if text is None:
        return dt.time()
    half = text[-2:].lower() if text[-1] in "mM" else ""
    hour, minute, second = map(int, [*re.findall("[0-9]+", text), "0", "0"][:3])
    if half:
        if not 1 <= hour <= 12:
            raise ValueError(text)
        hour = hour % 12 + (12 if half == "pm" else 0)
    return dt.time(hour, minute, second)


def _day_of(written: re.Match[str], now: dt.datetime) -> dt.date:
    """Return the day that is written. Raises `ValueError`."""
    today = now.date()
    if written["word"]:
        ago = 0 if written["word"].lower() == "today" else 2 if written["before"] else 1
        return today - dt.timedelta(days=ago)
    if written["name"]:
        ago = (today.weekday() - _index_of(written["name"], _WEEKDAYS)) % 7
        is_before_today = (written["last"] or "").lower() == "last "
        return today - dt.timedelta(days=7 if is_before_today and not ago else ago)
    if written["numbers"]:
        return _day_of_numbers(written["numbers"])
    month = 1 + _index_of(written["month"] or written["us_month"], _MONTHS)
    number = int(re.sub(r"\D", "", written["day"] or written["us_day"]))
    if written["year"] is not None:
        day = dt.date(int(written["year"]), month, number)
    else:
        # The last one; 29 February may be missing in either year.
        years = [year for year in (now.year, now.year - 1) if number <= calendar.monthrange(year, month)[1]]
        past = [day for day in (dt.date(year, month, number) for year in years) if day <= today]
        if not past:
            raise ValueError(written[0])
        day = past[0]
    if written["weekday"] and _index_of(written["weekday"], _WEEKDAYS) != day.weekday():
        raise ValueError(written[0])
    return day


def _day_of_numbers(text: str) -> dt.date:
    """Return the day of 2024/3/11, of 11.3.2024, or of 13/3/2024 and 3/13/2024. Raises `ValueError`."""
    first, second, third = map(int, re.findall("[0-9]+", text))
    if first > 31:
        return dt.date(first, second, third)
    if "." in text or first > 12 or first == second:
        return dt.date(third, second, first)
    if second > 12:
        return dt.date(third, first, second)
    raise AmbiguousDate(text)


def _index_of(name: str, names: Sequence[str]) -> int:
    """Return the index of a name in full or by its first three letters. Raises `ValueError`."""
    short = [full[:3] for full in names]
    return (names if name.lower() in names else short).index(name.lower())
