"""Dates and times by Django's patterns, with the parts of a pattern remembered.

A page formats hundreds of them, and Django's formatter interprets the pattern again for each, a character at a time,
and translates the pattern and the names of months each time.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from functools import lru_cache, partial

from django.utils import dateformat
from django.utils.functional import Promise
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

REMEMBERED = 4096
"""Days of each pattern and language; there are fewer minutes and seconds."""

Part = Callable[[dt.date | dt.time], str]


class DateFormat:
    """A pattern. Called with a date, a time or both, it returns it in the active language, as Django's filters do.

    The time is not converted to the viewer's zone. Nothing that is remembered becomes stale: the translations of a
    language are loaded once.
    """

    def __init__(self, pattern: str | Promise) -> None:
        self._pattern = pattern
        self._parts: dict[str | None, tuple[Part, ...]] = {}

    def __call__(self, value: dt.date | dt.time) -> str:
        language = get_language()
        parts = self._parts.get(language)
        if parts is None:
            # Of the active language: a lazy pattern is translated here.
            parts = self._parts[language] = _split(str(self._pattern))
        return "".join([part(value) for part in parts])


def _split(pattern: str) -> tuple[Part, ...]:
    """Return the parts of a pattern; the whole if it has a character of another kind, such as a time zone's."""
    found = list(_PARTS.finditer(pattern))
    if any(match.lastgroup == "other" for match in found):
        return (partial(_format, pattern=pattern),)
    return tuple(_make_part(match.lastgroup or "", match[0]) for match in found)


def _make_part(kind: str, pattern: str) -> Part:
    """Return a function that formats one part of a value, which many values share, and remembers the results."""

    @lru_cache(maxsize=REMEMBERED)
    def format_number(number: int) -> str:
        if kind == "day":
            return _format(dt.date.fromordinal(number), pattern)
        return _format(dt.time(*divmod(number, 60)) if kind == "minute" else dt.time(second=number), pattern)

    def format_day(value: dt.date | dt.time) -> str:
        return format_number(value.toordinal()) if isinstance(value, dt.date) else _format(value, pattern)

    def format_minute(value: dt.date | dt.time) -> str:
        if isinstance(value, dt.datetime | dt.time):
            return format_number(value.hour * 60 + value.minute)
        return _format(value, pattern)

    def format_second(value: dt.date | dt.time) -> str:
        return format_number(value.second) if isinstance(value, dt.datetime | dt.time) else _format(value, pattern)

    return {"day": format_day, "minute": format_minute, "second": format_second}[kind]


def _format(value: dt.date | dt.time, pattern: str) -> str:
    if isinstance(value, dt.time):
        return str(dateformat.time_format(value, pattern))
    return str(dateformat.format(value, pattern))
