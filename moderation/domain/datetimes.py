"""Parsing of dates and times that users type."""

from __future__ import annotations

import datetime as dt
import re

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import MIN_ID, first_id_at, time_of, unix_ms
from chatstore.domain.texts import gettext_lazy as _

EARLIEST = time_of(MIN_ID) + dt.timedelta(seconds=1)
"""Earliest accepted time. Ids begin 2^41 ms before 2015, in 1945."""

# Accept relative times too; during a raid there is no time to convert to UTC.
_AGO = re.compile(r"([0-9]{1,5}) ?(min|h|d|minutes?|hours?|days?)(?: ago)?", re.IGNORECASE)
_UNITS = {"m": dt.timedelta(minutes=1), "h": dt.timedelta(hours=1), "d": dt.timedelta(days=1)}


def parse_datetime(text: str, *, now: dt.datetime) -> dt.datetime:
    """Parse an ISO 8601 date or time (in the time zone of `now`, unless it has its own) or a relative time.

    A date means its midnight.

    Raises `BadInput` if the text is not a date, is in the future, or is earlier than the first possible id.
    """
    typed = text.strip()
    ago = _AGO.fullmatch(typed)
    try:
        time = now - int(ago[1]) * _UNITS[ago[2][0].lower()] if ago else dt.datetime.fromisoformat(typed)
        time = (time if time.tzinfo else time.replace(tzinfo=now.tzinfo)).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise BadInput(
            _(
                "“%(text)s” is not a valid date. Use a format like 2024-03-11, 2024-03-11T14:30 or “20 minutes ago”.",
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
