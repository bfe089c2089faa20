"""Dates that a person types."""

from __future__ import annotations

import datetime as dt
import re

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import MIN_ID, first_id_at, time_of, unix_ms

EARLIEST = time_of(MIN_ID) + dt.timedelta(seconds=1)
"""Before that there are no ids: 2^41 ms before 2015, in 1945."""

_EXAMPLE = "2024-03-11, 2024-03-11T14:30 or “20 minutes ago”"

# Nobody in a raid works out what the clock showed in UTC.
_AGO = re.compile(r"([0-9]{1,5}) ?(min|h|d|minutes?|hours?|days?)(?: ago)?", re.IGNORECASE)
_UNITS = {"m": dt.timedelta(minutes=1), "h": dt.timedelta(hours=1), "d": dt.timedelta(days=1)}


def parse_moment(text: str, *, now: dt.datetime) -> dt.datetime:
    """A date or a moment in ISO form, UTC unless it names a zone, or how long ago; a date is its midnight.

    Raises `BadInput` when it is no date, lies in the future or before all ids.
    """
    words = text.strip()
    ago = _AGO.fullmatch(words)
    try:
        moment = now - int(ago[1]) * _UNITS[ago[2][0].lower()] if ago else dt.datetime.fromisoformat(words)
        moment = moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        raise BadInput(f"“{words[:40]}” is not a date. Write it like {_EXAMPLE}.") from None
    if moment > now:
        raise BadInput(f"{words[:40]} lies in the future.")
    if moment < EARLIEST:
        raise BadInput(f"{words[:40]} lies before any message could have been posted.")
    return moment


def id_from(moment: dt.datetime) -> int:
    """The lowest id of a moment: everything before it was posted earlier."""
    return first_id_at(unix_ms(moment))
