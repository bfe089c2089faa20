"""Parsing of dates and times that users type."""

from __future__ import annotations

import datetime as dt
import re

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import MIN_ID, first_id_at, time_of, unix_ms

EARLIEST = time_of(MIN_ID) + dt.timedelta(seconds=1)
"""Earliest accepted time. Ids begin 2^41 ms before 2015, in 1945."""

_EXAMPLE = "2024-03-11, 2024-03-11T14:30 or “20 minutes ago”"

# Accept relative times too: during a raid there is no time to convert to UTC.
_AGO = re.compile(r"([0-9]{1,5}) ?(min|h|d|minutes?|hours?|days?)(?: ago)?", re.IGNORECASE)
_UNITS = {"m": dt.timedelta(minutes=1), "h": dt.timedelta(hours=1), "d": dt.timedelta(days=1)}


def parse_datetime(text: str, *, now: dt.datetime) -> dt.datetime:
    """Parse an ISO 8601 date or time (UTC unless it has a zone) or a relative time. A date means its midnight.

    Raises `BadInput` if the text is not a date, is in the future, or is earlier than the first possible id.
    """
    words = text.strip()
    ago = _AGO.fullmatch(words)
    try:
        moment = now - int(ago[1]) * _UNITS[ago[2][0].lower()] if ago else dt.datetime.fromisoformat(words)
        moment = moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        raise BadInput(f"“{words[:40]}” is not a valid date. Use a format like {_EXAMPLE}.") from None
    if moment > now:
        raise BadInput(f"{words[:40]} is in the future. Enter an earlier time.")
    if moment < EARLIEST:
        raise BadInput(f"{words[:40]} is before the first possible message. Enter a later time.")
    return moment


def first_id_from(moment: dt.datetime) -> int:
    """Return the lowest id of a point in time: messages with lower ids were posted earlier."""
    return first_id_at(unix_ms(moment))
