"""Texts for people that are translated where they are shown.

A `Text` is a plain English string that also has its template and its parameters. Logs, commands and notifications use
the string; pages translate the template for the viewer. The functions are called like Django's lazy ones, so that
`makemessages` finds their templates, but take the parameters too: Django is not imported here, and no language is
active in a worker.

The type of a parameter determines how it is shown: an integer is a count and gets its digits grouped (pass an ID as a
string), `Size` and `Duration` are a number with its unit, times and days follow the viewer's time zone and formats,
a day has no year, a tuple is a list, a `Text` is translated, and any other string is data.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from chatstore.domain.datetimes import format_datetime


@dataclass(frozen=True, slots=True)
class Size:
    """Number of bytes."""

    count: int

    def __str__(self) -> str:
        size = float(self.count)
        for unit in ("B", "kB", "MB", "GB"):
            if size < 999.5:
                return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"
            size /= 1000
        return f"{size:.1f} TB"


@dataclass(frozen=True, slots=True)
class Days:
    """Range of days, both inclusive."""

    first: dt.date
    last: dt.date

    def __str__(self) -> str:
        return format_date_range(self.first, self.last)


@dataclass(frozen=True, slots=True)
class Duration:
    """Number of seconds."""

    seconds: float

    def __str__(self) -> str:
        minutes, seconds = divmod(max(round(self.seconds), 0), 60)
        hours, minutes = divmod(minutes, 60)
        days, hours = divmod(hours, 24)
        if days:
            return f"{days:,} day{'' if days == 1 else 's'}{f' {hours} h' if hours else ''}"
        if hours:
            return f"{hours} h {minutes} min"
        if minutes:
            return f"{minutes} min{f' {seconds} s' if seconds else ''}"
        return f"{seconds} s"


Param: TypeAlias = str | int | float | dt.datetime | dt.date | dt.time | Size | Duration | Days | tuple["Param", ...]


class Text(str):
    """English text with its template and parameters. Use `gettext_lazy` and `ngettext_lazy` to make one.

    plural: the template for other counts than 1, or "". The count is the parameter `count`.
    """

    __slots__ = ("context", "params", "plural", "template")
    context: str
    template: str
    plural: str
    params: Mapping[str, Param]

    def __new__(cls, template: str, params: Mapping[str, Param], *, plural: str = "", context: str = "") -> Self:
        chosen = plural if plural and params["count"] != 1 else template
        text = super().__new__(cls, chosen % {name: _in_english(value) for name, value in params.items()})
        text.template, text.plural, text.params, text.context = template, plural, params, context
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return from_json, (as_json(self),)


def gettext_noop(template: str) -> str:
    """Mark a template that gets its parameters elsewhere."""
    return template


def gettext_lazy(template: str, /, **params: Param) -> Text:
    """Return a text from a template such as "There is no channel %(id)s."."""
    return Text(template, params)


def pgettext_lazy(context: str, template: str, /, **params: Param) -> Text:
    """Return a text whose template needs a context to be translated."""
    return Text(template, params, context=context)


def ngettext_lazy(singular: str, plural: str, count: int, /, **params: Param) -> Text:
    """Return a text from one of two templates in English, and as many as another language has. Both have `count`."""
    return Text(singular, {"count": count, **params}, plural=plural)


def format_date_range(first: dt.date, last: dt.date) -> str:
    """Format a range of dates in English: "11–20 March 2024"."""
    if first == last:
        return f"{first.day} {first:%B %Y}"
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}–{last.day} {last:%B %Y}"
    if first.year == last.year:
        return f"{first.day} {first:%B} – {last.day} {last:%B %Y}"
    return f"{first.day} {first:%B %Y} – {last.day} {last:%B %Y}"


def _in_english(value: Param) -> str:
    match value:
        case dt.time():
            return f"{value:%H:%M}"
        case int() | float():
            return f"{value:,}"
        case dt.datetime():
            return format_datetime(value)
        case dt.date():
            return f"{value.day} {value:%B}"
        case tuple():
            return ", ".join(map(_in_english, value))
        case _:
            return str(value)


# --- As stored in Postgres --------------------------------------------------------------

_STORED_PREFIX = '{"template": '


def as_stored(text: str) -> str:
    """Return what is stored for a text: its template and parameters as JSON. Other strings are stored as they are."""
    if not isinstance(text, Text):
        if not text.startswith(_STORED_PREFIX):
            return text
        text = Text("%(text)s", {"text": text})
    return json.dumps(as_json(text), ensure_ascii=False)


def from_stored(stored: str) -> str:
    """Return the text that was stored."""
    return from_json(json.loads(stored)) if stored.startswith(_STORED_PREFIX) else stored


def as_json(text: Param) -> Any:  # noqa: PLR0911
    """Return a text, or a parameter, as a value for JSON. Strings that are not a `Text` stay strings."""
    match text:
        case Text():
            params = {name: as_json(value) for name, value in text.params.items()}
            more = {"plural": text.plural, "context": text.context}
            return {"template": text.template, "params": params} | {
                name: value for name, value in more.items() if value
            }
        case dt.datetime():
            return {"datetime": text.isoformat()}
        case dt.date():
            return {"date": text.isoformat()}
        case dt.time():
            return {"time": text.isoformat()}
        case Size():
            return {"bytes": text.count}
        case Duration():
            return {"seconds": text.seconds}
        case Days():
            return {"first": text.first.isoformat(), "last": text.last.isoformat()}
        case tuple():
            return [as_json(value) for value in text]
        case _:
            return text


def from_json(value: Any) -> Any:  # noqa: PLR0911
    """Return the text, or the parameter, that `as_json` returned a value for."""
    match value:
        case {"template": str(template), "params": {**params}}:
            read = {str(name): from_json(param) for name, param in params.items()}
            return Text(template, read, plural=value.get("plural", ""), context=value.get("context", ""))
        case {"datetime": text}:
            return dt.datetime.fromisoformat(text)
        case {"date": text}:
            return dt.date.fromisoformat(text)
        case {"time": text}:
            return dt.time.fromisoformat(text)
        case {"bytes": count}:
            return Size(count)
        case {"seconds": seconds}:
            return Duration(seconds)
        case {"first": first, "last": last}:
            return Days(dt.date.fromisoformat(first), dt.date.fromisoformat(last))
        case [*values]:
            return tuple(from_json(param) for param in values)
        case _:
            return value
