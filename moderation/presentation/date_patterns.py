"""Dates and times by Django's patterns, with the parts of a pattern remembered.

A page formats hundreds of them, and Django's formatter interprets the pattern again for each, a character at a time,
and translates the names of months each time.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache

from django.utils import dateformat
from django.utils.translation import get_language

_LITERAL = r"\\.|[^A-Za-z\\]"
_PARTS = re.compile(
    rf"(?P<day>(?:[bdDEFjlLmMnNStwWyYz]|{_LITERAL})+)"
    rf"|(?P<minute>(?:[aAgGhHi]|{_LITERAL})+)"
    rf"|(?P<second>(?:s|{_LITERAL})+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
"""Runs of a pattern that depend on the day only, on hour and minute only, and on the second only."""


def date_format(value: dt.date | dt.time, pattern: str) -> str:
    """Return a date, a time or both in the active language, as Django's `date` and `time` filters do.

    The time is not converted to the viewer's zone.
    """
    parts = _split(pattern)
    if not parts:
        return _format(value, pattern)
    language = get_language()
    return "".join([_format_part(_relevant(kind, value), part, language) for kind, part in parts])


@lru_cache(maxsize=256)
def _split(pattern: str) -> tuple[tuple[str, str], ...]:
    """Return the parts of a pattern; none if it has a character of another kind, such as a time zone's."""
    found = [(match.lastgroup or "", match[0]) for match in _PARTS.finditer(pattern)]
    return () if any(kind == "other" for kind, _ in found) else tuple(found)


def _relevant(kind: str, value: dt.date | dt.time) -> dt.date | dt.time:
    """Return what a part depends on, so that many values share its result."""
    if kind == "day":
        return value.date() if isinstance(value, dt.datetime) else value
    if isinstance(value, dt.datetime | dt.time):
        return dt.time(value.hour, value.minute) if kind == "minute" else dt.time(second=value.second)
    return value


@lru_cache(maxsize=8192)
def _format_part(value: dt.date | dt.time, part: str, _language: str | None) -> str:
    """Format a part. The language only belongs to the key: Django takes the active one."""
    return _format(value, part)


def _format(value: dt.date | dt.time, pattern: str) -> str:
    if isinstance(value, dt.time):
        return str(dateformat.time_format(value, pattern))
    return str(dateformat.format(value, pattern))
