"""Numbers, sizes, durations, dates and times in the language and the time zone of the viewer.

Both are active for the request (see `moderation.preferences`). Outside a request they are the settings'.
Date formats are translatable strings, in the syntax of Django's `date` filter.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django.utils import timezone
from django.utils.formats import get_format, number_format
from django.utils.translation import get_language, ngettext, pgettext, pgettext_lazy
from django.utils.translation import gettext as _

from moderation.presentation.date_patterns import DateFormat

_KIB = 1024
_DAY_SECONDS = 86_400
_BESIDE_NUMBER = re.compile(r"(?<=\d) |(?<!–) (?=[\d–])")


def format_number(value: float, *, digits: int = 0) -> str:
    """Return a number in groups: 1204 → "1,204". digits: decimal places."""
    if type(value) is int and not digits and -1_000 < value < 1_000:
        # No language has groups of less than three digits.
        return str(value)
    # IDs are too large for a float. Others are rounded here, since Django's own formatting truncates.
    rounded = Decimal(value) if isinstance(value, int) and not digits else Decimal(f"{value:.{digits}f}")
    decimal, separator, is_by_thousands = _separators(get_language())
    if not is_by_thousands:
        return str(number_format(rounded, decimal_pos=digits, force_grouping=True))
    return f"{rounded:,}".translate({ord("."): decimal, ord(","): separator})


def format_short(number: int) -> str:
    """Return a number in at most four characters up to 999,999, rounded down: 1999 → "1.9k", 12345 → "12k"."""
    if number < 1_000:
        return format_number(number)
    shown = format_number(number // 100 / 10, digits=1) if number < 10_000 else format_number(number // 1_000)
    return _("%(thousands)sk") % {"thousands": shown}


@lru_cache(maxsize=64)
def _separators(_language: str | None) -> tuple[str, str, bool]:
    """Return a language's decimal point, its separator of groups, and whether each group has three digits.

    The language only belongs to the key: Django takes the active one.
    """
    return get_format("DECIMAL_SEPARATOR"), get_format("THOUSAND_SEPARATOR"), get_format("NUMBER_GROUPING") == 3


def format_rate(per_second: float) -> str:
    """Return a rate without needless digits: "8,450", "3.2"."""
    return format_number(per_second, digits=1 if per_second < 10 else 0)


def format_percent(value: float | None) -> str:
    """25.04 → "25.0 %"; None → "unknown". A part is never rounded to nothing or to all: 99.98 → "99.9 %"."""
    if value is None:
        return unknown()
    if 0 < value < 100:
        value = min(max(value, 0.1), 99.9)
    return _("%(number)s %%") % {"number": format_number(value, digits=1)}


def round_percent(part: int, whole: int) -> int:
    """Return a share in whole percent: 2 of 3 → 67. A part is never rounded to nothing or to all: 999 of 1,000 → 99."""
    if not 0 < part < whole:
        return 100 if part and whole else 0
    return min(max((200 * part + whole) // (2 * whole), 1), 99)


def format_milliseconds(value: float) -> str:
    """2.41 → "2.4 ms", 812.0 → "812 ms", 0.0 → "0 ms"."""
    number = format_number(value, digits=0 if value >= 99.95 or not value else 1)
    return _("%(number)s ms") % {"number": number}


def format_size(count: float) -> str:
    """Return a size in decimal units: 812 → "812 B", 1234567 → "1.2 MB"."""
    size = float(round(count))
    for unit in (_("%(number)s B"), _("%(number)s kB"), _("%(number)s MB"), _("%(number)s GB")):
        if size < 999.5:
            is_whole = size >= 99.95 or float(round(count)) == size
            return unit % {"number": format_number(size, digits=0 if is_whole else 1)}
        size /= 1000
    return _("%(number)s TB") % {"number": format_number(size, digits=1)}


def trim_decimals(quantity: str) -> str:
    """Return a quantity without decimals that are zero: "5.0 ms" → "5 ms". For values that are round anyway."""
    point = re.escape(_separators(get_language())[0])
    return re.sub(rf"(?<=\d){point}0+(?!\d)", "", quantity)


def format_file_size(size: int) -> str:
    """Return a size in binary units, as chats show files: 1536 → "1.5 KiB"."""
    if size < _KIB:
        return ngettext("%(number)s byte", "%(number)s bytes", size) % {"number": format_number(size)}
    value = size / _KIB
    for unit in (_("%(number)s KiB"), _("%(number)s MiB"), _("%(number)s GiB")):
        if value < _KIB:
            return unit % {"number": format_number(value, digits=1)}
        value /= _KIB
    return _("%(number)s TiB") % {"number": format_number(value, digits=1)}


def unknown() -> str:
    """Return the word for a figure that was not measured."""
    return _("unknown")


# --- Counts ---------------------------------------------------------------------------

_COUNTS: dict[str, Callable[[int], str]] = {
    "message": lambda n: ngettext("%(count)s message", "%(count)s messages", n),
    "tombstone": lambda n: ngettext("%(count)s tombstone", "%(count)s tombstones", n),
    "bucket": lambda n: ngettext("%(count)s bucket", "%(count)s buckets", n),
    "channel": lambda n: ngettext("%(count)s channel", "%(count)s channels", n),
    "delete": lambda n: ngettext("%(count)s delete", "%(count)s deletes", n),
    "report": lambda n: ngettext("%(count)s report", "%(count)s reports", n),
    "row": lambda n: ngettext("%(count)s row", "%(count)s rows", n),
    "more bucket": lambda n: ngettext("%(count)s more bucket", "%(count)s more buckets", n),
    "more channel": lambda n: ngettext("%(count)s more channel", "%(count)s more channels", n),
    "more line": lambda n: ngettext("%(count)s more line", "%(count)s more lines", n),
    "more message": lambda n: ngettext("%(count)s more message", "%(count)s more messages", n),
    "server": lambda n: ngettext("%(count)s server", "%(count)s servers", n),
    "more server": lambda n: ngettext("%(count)s more server", "%(count)s more servers", n),
    "other author": lambda n: ngettext("%(count)s other author", "%(count)s other authors", n),
    "other finding": lambda n: ngettext("%(count)s other finding", "%(count)s other findings", n),
    "other purge": lambda n: ngettext("%(count)s other purge", "%(count)s other purges", n),
    "other run": lambda n: ngettext("%(count)s other run", "%(count)s other runs", n),
    "time": lambda n: ngettext("%(count)s time", "%(count)s times", n),
    "character": lambda n: ngettext("%(count)s character", "%(count)s characters", n),
}
"""Translated counts by noun: a noun that pages count is added here, with its plural."""

_UNKNOWN_COUNTS: dict[str, Callable[[], str]] = {
    "message": lambda: _("unknown number of messages"),
    "tombstone": lambda: _("unknown number of tombstones"),
    "bucket": lambda: _("unknown number of buckets"),
    "channel": lambda: _("unknown number of channels"),
}


def format_count(value: int | None, noun: str) -> str:
    """(1, "message") → "1 message"; (1204, "message") → "1,204 messages"; None → "unknown number of messages"."""
    if value is None:
        return _UNKNOWN_COUNTS.get(noun, unknown)()
    return _COUNTS[noun](value) % {"count": format_number(value)}


def keep_together(quantity: str) -> str:
    """Return a quantity for a page, where no line breaks beside its numbers: "3 min 20 s" with no-break spaces.

    A span of days, "31 August – 9 September 2026", breaks only after its dash.
    """
    return _BESIDE_NUMBER.sub("\u00a0", quantity)


def join_list(items: Iterable[str]) -> str:
    """Return a list as text: "10.0.0.1, 10.0.0.2"."""
    return pgettext("separator of a list", ", ").join(items)


# --- Durations ------------------------------------------------------------------------


def format_duration(seconds: float | None) -> str:
    """Return a duration in at most two units: "40 s", "3 min 20 s", "2 h 5 min"."""
    if seconds is None:
        return _("not known yet")
    whole = max(round(seconds), 0)
    if whole < 60:
        return _("%(seconds)s s") % {"seconds": whole}
    if whole < 3600 and whole % 60 == 0:
        return _("%(minutes)s min") % {"minutes": whole // 60}
    if whole < 3600:
        return _("%(minutes)s min %(seconds)s s") % {"minutes": whole // 60, "seconds": whole % 60}
    return _("%(hours)s h %(minutes)s min") % {"hours": format_number(whole // 3600), "minutes": whole % 3600 // 60}


def format_long_duration(seconds: float) -> str:
    """Return days and hours: "1 day 4 h", "10 days"; below a day as `format_duration`."""
    days, rest = divmod(round(seconds), _DAY_SECONDS)
    if not days:
        return format_duration(seconds)
    values = {"days": format_number(days), "hours": rest // 3_600}
    if not values["hours"]:
        return ngettext("%(days)s day", "%(days)s days", days) % values
    return ngettext("%(days)s day %(hours)s h", "%(days)s days %(hours)s h", days) % values


# --- Dates and times ------------------------------------------------------------------

_DAY = DateFormat(pgettext_lazy("date format", "l, j F Y"))
_SHORT_DAY = DateFormat(pgettext_lazy("date format", "j M Y"))
_MONTH = DateFormat(pgettext_lazy("date format", "F Y"))
_LONG_DAY = DateFormat(pgettext_lazy("date format", "j F Y"))
_DAY_OF_MONTH = DateFormat(pgettext_lazy("date format", "j F"))
_AXIS_DAY = DateFormat(pgettext_lazy("date format", "j M"))
_FIRST_OF_MONTH = DateFormat(pgettext_lazy("date format, first day of a span within a month", "j"))
_FIRST_OF_YEAR = DateFormat(pgettext_lazy("date format, first day of a span within a year", "j F"))
_CLOCK = DateFormat(pgettext_lazy("time format", "H:i"))
_DATETIME = DateFormat(pgettext_lazy("date and time format", "j M Y, H:i"))
_EXACT = DateFormat(pgettext_lazy("date and time format", "j F Y, H:i:s"))
_SLOT = DateFormat(pgettext_lazy("date and time format", "D j F, H:i"))
_SLOT_OF_YEAR = DateFormat(pgettext_lazy("date and time format", "D j F Y, H:i"))


def format_day(day: dt.date) -> str:
    """Return a day with its weekday: "Monday, 11 March 2024"."""
    return _DAY(_local_day(day))


def format_short_day(day: dt.date) -> str:
    """Return a day: "11 Mar 2024"."""
    return _SHORT_DAY(_local_day(day))


def format_long_day(day: dt.date) -> str:
    """Return a day with the whole name of its month: "11 March 2024"."""
    return _LONG_DAY(day)


def format_month(day: dt.date) -> str:
    """Return a month: "March 2024"."""
    return _MONTH(day)


def format_day_of_month(day: dt.date) -> str:
    """Return a day without its year: "11 March"."""
    return _DAY_OF_MONTH(day)


def format_axis_day(day: dt.date) -> str:
    """Return a day for a chart's axis: "1 Mar"."""
    return _AXIS_DAY(day)


def utc_midnight(day: dt.date) -> str:
    """Return the beginning of a day in UTC, as the timeline's parameter `at` takes it: "2024-03-11T00:00Z"."""
    return f"{day.isoformat()}T00:00Z"


def format_days(first: dt.date, last: dt.date) -> str:
    """Return a span of days, both inclusive: "11–20 March 2024". It breaks only after its dash."""
    if first == last:
        return keep_together(_LONG_DAY(last))
    if (first.year, first.month) == (last.year, last.month):
        begin = _FIRST_OF_MONTH(first)
        return keep_together(_("%(first)s–%(last)s") % {"first": begin, "last": _LONG_DAY(last)})
    begin = _FIRST_OF_YEAR(first) if first.year == last.year else _LONG_DAY(first)
    return keep_together(_("%(first)s – %(last)s") % {"first": begin, "last": _LONG_DAY(last)})


def format_short_days(first: dt.date, last: dt.date) -> str:
    """Return a span of days, both inclusive: "11–20 Mar 2024". It breaks only after its dash."""
    if first == last:
        return keep_together(_SHORT_DAY(last))
    if (first.year, first.month) == (last.year, last.month):
        begin = _FIRST_OF_MONTH(first)
        return keep_together(_("%(first)s–%(last)s") % {"first": begin, "last": _SHORT_DAY(last)})
    begin = _AXIS_DAY(first) if first.year == last.year else _SHORT_DAY(first)
    return keep_together(_("%(first)s – %(last)s") % {"first": begin, "last": _SHORT_DAY(last)})


def format_clock(time: dt.datetime | dt.time) -> str:
    """Return hours and minutes: "14:02"."""
    local = timezone.localtime(time) if isinstance(time, dt.datetime) else time
    return _CLOCK(local)


def format_datetime(time: dt.datetime) -> str:
    """Return day and minute in the viewer's time zone: "11 Mar 2024, 14:02"."""
    return _DATETIME(timezone.localtime(time))


def format_span(start: dt.datetime, end: dt.datetime) -> str:
    """Return a span of times in the viewer's time zone: "11 Mar 2024, 14:00 to 15:00"; whole days without a time."""
    return format_spans((start, end), (0,))[0]


def format_spans(edges: Sequence[dt.datetime], numbers: Iterable[int]) -> dict[int, str]:
    """Return the spans between neighbouring times, as `format_span` does. numbers: of those that are needed."""
    zone, pattern = timezone.get_current_timezone(), _("%(start)s to %(end)s")
    spans = {}
    for number in numbers:
        first, last = (edge.astimezone(zone) for edge in edges[number : number + 2])
        if first.time() == last.time() == dt.time.min:
            spans[number] = _format_whole_days(first.date(), last.date() - dt.timedelta(days=1), pattern)
        else:
            until = _CLOCK(last) if first.date() == last.date() else _DATETIME(last)
            spans[number] = pattern % {"start": _DATETIME(first), "end": until}
    return spans


def _format_whole_days(first: dt.date, last: dt.date, pattern: str) -> str:
    if first >= last:
        return _SHORT_DAY(first)
    return pattern % {"start": _SHORT_DAY(first), "end": _SHORT_DAY(last)}


def format_deadline(time: dt.datetime, *, after: dt.datetime | None = None) -> str:
    """Return day and minute with UTC beside it: "11 Mar 2024, 15:02 (14:02 UTC)"; in UTC "11 Mar 2024, 14:02 UTC".

    after: an earlier time that is printed before this one. Its day is not repeated.
    """
    local, utc = timezone.localtime(time), time.astimezone(dt.UTC)
    is_same_day = after is not None and timezone.localtime(after).date() == local.date()
    here = _CLOCK(local) if is_same_day else _DATETIME(local)
    if local.utcoffset() == utc.utcoffset():
        return _("%(datetime)s UTC") % {"datetime": here}
    in_utc = format_utc_clock(utc) if local.date() == utc.date() else _DATETIME(utc)
    return _("%(datetime)s (%(utc)s UTC)") % {"datetime": here, "utc": in_utc}


def format_exact(time: dt.datetime) -> str:
    """Return date and time to the second: "11 March 2024, 14:02:07 UTC"; elsewhere in local time with UTC beside it."""
    local, utc = timezone.localtime(time), time.astimezone(dt.UTC)
    if local.utcoffset() == utc.utcoffset():
        return _("%(datetime)s UTC") % {"datetime": _EXACT(utc)}
    return _("%(datetime)s (%(utc)s UTC)") % {"datetime": _EXACT(local), "utc": _EXACT(utc)}


def format_utc_clock(time: dt.datetime) -> str:
    """Return hours and minutes in UTC, without its name: "14:02"."""
    return _CLOCK(time.astimezone(dt.UTC))


def format_slot(wall: dt.datetime, *, this_year: int) -> str:
    """Return a wall clock's time without its zone: "Sun 29 March, 02:30", with the year if it is not this one."""
    if wall.year == this_year:
        return _SLOT(wall)
    return _SLOT_OF_YEAR(wall)


# Unit, and until when it is used. Less than two days are given in hours: "1 day ago" could be almost two.
_PAST: tuple[tuple[int, int, Callable[[int], str]], ...] = (
    (1, 60, lambda n: ngettext("%(count)s second ago", "%(count)s seconds ago", n)),
    (60, 3_600, lambda n: ngettext("%(count)s minute ago", "%(count)s minutes ago", n)),
    (3_600, 2 * _DAY_SECONDS, lambda n: ngettext("%(count)s hour ago", "%(count)s hours ago", n)),
    (_DAY_SECONDS, 30 * _DAY_SECONDS, lambda n: ngettext("%(count)s day ago", "%(count)s days ago", n)),
)
# Unit, and from when on it is used. Less than two days are given in hours: "in 1 day" could be today or tomorrow.
_FUTURE: tuple[tuple[int, int, Callable[[int], str]], ...] = (
    (_DAY_SECONDS, 2 * _DAY_SECONDS - 1_800, lambda n: ngettext("in %(count)s day", "in %(count)s days", n)),
    (3_600, 3_600, lambda n: ngettext("in %(count)s hour", "in %(count)s hours", n)),
    (60, 60, lambda n: ngettext("in %(count)s minute", "in %(count)s minutes", n)),
)


def format_ago(time: dt.datetime, now: dt.datetime) -> str:
    """Return "just now", "3 minutes ago", "43 hours ago", "2 days ago", or the day for anything older than a month."""
    seconds = (now - time).total_seconds()
    if seconds < 5:
        return _("just now")
    for length, limit, phrase in _PAST:
        if seconds < limit:
            whole = int(seconds // length)
            return phrase(whole) % {"count": whole}
    return format_short_day(time)


def has_age(time: dt.datetime, now: dt.datetime) -> bool:
    """Return whether `format_ago` returns an age, and not the day."""
    return (now - time).total_seconds() < _PAST[-1][1]


def format_ahead(time: dt.datetime, now: dt.datetime) -> str:
    """Return "in 3 minutes", "in 26 hours", "in 2 days", or "in less than a minute"."""
    seconds = (time - now).total_seconds()
    for length, least, phrase in _FUTURE:
        if seconds >= least:
            whole = round(seconds / length)
            return phrase(whole) % {"count": format_number(whole)}
    return _("in less than a minute")


def _local_day(day: Any) -> dt.date:
    """Return the day of a time in the viewer's time zone; a date unchanged."""
    return timezone.localtime(day).date() if isinstance(day, dt.datetime) and timezone.is_aware(day) else day
