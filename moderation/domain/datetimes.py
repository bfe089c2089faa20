"""Parsing of dates and times that users type, or copy from a page."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from contextlib import contextmanager

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import MIN_ID, first_id_at, parse_snowflake, time_of, unix_ms
from chatstore.domain.texts import gettext_lazy as _
from moderation.domain.links import find_message_link
from moderation.domain.written_dates import AmbiguousDate, is_day, parse_ago, parse_month, parse_written

EARLIEST = time_of(MIN_ID) + dt.timedelta(seconds=1)
"""Earliest accepted time. Ids begin 2^41 ms before 2015, in 1945."""

MAX_CHARACTERS = 120
"""Of a date as typed; the link of a message is the longest."""

_SHOWN = 60

_BEGIN = re.compile(r"(?:since|from|until|before|after) (?=\S)", re.IGNORECASE)
_TIMESTAMP = re.compile(r"<t:(-?[0-9]{1,12})(?::[A-Za-z])?>")
"""A time as Discord's messages contain it, in seconds: "<t:1710167520:R>"."""

_ID = re.compile(r"-?[0-9]{15,20}")

# Spans as pages write them.
_TIMES = re.compile(r"(.+?),? (?:to|until) (.+)", re.IGNORECASE)
_CLOCKS = re.compile(r"(.*?[0-9]{1,2}:[0-9]{2})(?: ?– ?| - )([0-9]{1,2}:[0-9]{2})")
_DAYS = re.compile(r"([0-9]{1,2}) ?[–-] ?([0-9]{1,2})( [a-z]{3,9}(?: [0-9]{4})?)", re.IGNORECASE)
_MONTHS = re.compile(r"([0-9]{1,2} [a-z]{3,9})( [0-9]{4})? – ([0-9]{1,2} [a-z]{3,9})( [0-9]{4})", re.IGNORECASE)
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: UTC| \([^()]+\))?", re.IGNORECASE)
_LAST_CLOCK = re.compile(r",? [0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?$")


def parse_datetime(text: str, *, now: dt.datetime, is_end: bool = False) -> dt.datetime:
    """Parse a date or time: ISO 8601, as pages write it in English ("11 March 2024, 14:30"), or relative to now.

    It is in the time zone of `now`, unless it has its own. A date means its midnight, a time without a date the last
    one, and a date without a year, or the name of a day, the last one. The id or the link of a message means when it
    was posted. A month and a span ("10–19 October 2024") mean their beginning; with `is_end` their end, or `now` if
    that comes first.

    Raises `BadInput` if the text is not a date, is in the future, or is earlier than the first possible id.
    """
    typed = " ".join(text.split())
    shown = typed[:_SHOWN]
    with _refusing_others(shown):
        time = _parse(typed, now, is_end=is_end).astimezone(dt.UTC)
    if time > now:
        raise BadInput(_("%(time)s is in the future. Enter an earlier time.", time=shown))
    if time < EARLIEST:
        raise BadInput(_("%(time)s is before the first possible message. Enter a later time.", time=shown))
    return time


def parse_bound(text: str, *, now: dt.datetime, is_end: bool = False) -> dt.datetime:
    """Parse the beginning of a period, or its end, which is exclusive, as `parse_datetime`; it may be in the future.

    At the end, a day is in the period, and so are a month and a span. Raises `BadInput`, also for a year that a time
    zone may not have.
    """
    typed = " ".join(text.split())
    with _refusing_others(typed[:_SHOWN]):
        span = _parse_span(typed, now)
        if span is not None:
            time = span[1 if is_end else 0]
        else:
            time = _parse_time(typed, now) + dt.timedelta(days=1 if is_end and is_day(typed) else 0)
        if not dt.MINYEAR < time.year < dt.MAXYEAR:
            raise BadInput(_("Enter a date with a year from 2 to 9998."))
        return time.astimezone(dt.UTC)


@contextmanager
def _refusing_others(shown: str) -> Iterator[None]:
    """Refuse what is not a date with an explanation. shown: the text."""
    try:
        yield
    except AmbiguousDate:
        raise BadInput(
            _("“%(text)s” can be two dates. Write the month as a word, such as 3 November 2024.", text=shown)
        ) from None
    except (ValueError, OverflowError):
        raise BadInput(
            _(
                "“%(text)s” is not a valid date. Write it like “11 March 2024”, “11 March 2024, 14:30”, "
                "“yesterday 14:30” or “20 minutes ago”.",
                text=shown,
            )
        ) from None


def first_id_from(time: dt.datetime) -> int:
    """Return the lowest id of a point in time: messages with lower ids were posted earlier."""
    return first_id_at(unix_ms(time))


def _parse(typed: str, now: dt.datetime, *, is_end: bool) -> dt.datetime:
    """Return the time, with a time zone. Raises `ValueError`, `OverflowError` or `BadInput`."""
    link = find_message_link(typed)
    if link or _ID.fullmatch(typed):
        return time_of(parse_snowflake(link[1] if link else typed))
    typed = _BEGIN.sub("", typed, count=1) if _BEGIN.match(typed) else typed
    span = _parse_span(typed, now)
    if span is None:
        return _parse_time(typed, now)
    first, end = span
    return min(end, now) if is_end else first


def _parse_time(typed: str, now: dt.datetime) -> dt.datetime:
    if found := _TIMESTAMP.fullmatch(typed):
        return dt.datetime.fromtimestamp(int(found[1]), dt.UTC)
    ago = parse_ago(typed, now)
    return parse_written(typed, now) if ago is None else ago


def _parse_span(typed: str, now: dt.datetime) -> tuple[dt.datetime, dt.datetime] | None:
    """Return the beginning and the end of a span, the end exclusive; None if the text is none."""
    if found := _TIMES.fullmatch(typed) or _CLOCKS.fullmatch(typed):
        return _parse_times(found[1], found[2], now)
    if found := _DAYS.fullmatch(typed):
        first, last = found[1] + found[3], found[2] + found[3]
    elif found := _MONTHS.fullmatch(typed):
        first, last = found[1] + (found[2] or found[4]), found[3] + found[4]
    else:
        month = parse_month(typed, now)
        return None if month is None else (month, (month + dt.timedelta(days=31)).replace(day=1))
    return parse_written(first, now), parse_written(last, now) + dt.timedelta(days=1)


def _parse_times(first: str, last: str, now: dt.datetime) -> tuple[dt.datetime, dt.datetime]:
    """Return two times. The second one may be a clock of the day of the first; if it is in UTC only, both are.

    A day without a time is in the span.
    """
    if last.upper().endswith(" UTC") and not first.upper().endswith(("UTC", "UTC)")):
        first += " UTC"
    if _CLOCK.fullmatch(last):
        day = _LAST_CLOCK.sub("", first.removesuffix(" UTC"))
        last = f"{day}, {last}" if day != first.removesuffix(" UTC") else last
    end = _parse_time(last, now)
    return _parse_time(first, now), end + dt.timedelta(days=1) if is_day(last) else end
