"""Dates and times that the server fills into text fields, as pages print them."""

from __future__ import annotations

import datetime as dt
import re

from django.utils import timezone

from moderation.domain.written_dates import is_day, parse_written
from moderation.presentation.formats import format_datetime, format_short_day

_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}.*)?")


def print_typed(text: str) -> str:
    """Return a day or a time in ISO 8601 as pages print it: "2024-03-11" → "11 Mar 2024". Other texts are returned as
    they are, and those that a field would not understand as the same time: with seconds, or in another language.
    """
    now = timezone.localtime()
    try:
        time = parse_written(text, now) if _ISO.fullmatch(text) else None
        return text if time is None else _print(time, now, with_time=not is_day(text)) or text
    except (ValueError, OverflowError):
        return text


def type_time(time: dt.datetime) -> str:
    """Return a time for a field: "11 Mar 2024, 15:02" in the active time zone; in ISO 8601 if that is not the same."""
    local = timezone.localtime(time)
    timespec = "milliseconds" if local.second or local.microsecond else "minutes"
    try:
        return _print(local, timezone.localtime(), with_time=True) or local.isoformat(timespec=timespec)
    except ValueError:
        return local.isoformat(timespec=timespec)


def _print(time: dt.datetime, now: dt.datetime, *, with_time: bool) -> str:
    """Return a printed time; "" if it is read as another one. Raises `ValueError` if it cannot be read."""
    printed = format_datetime(time) if with_time else format_short_day(time)
    # In UTC, since times of one zone are equal though the clocks were set back between them.
    return printed if parse_written(printed, now).astimezone(dt.UTC) == time.astimezone(dt.UTC) else ""
