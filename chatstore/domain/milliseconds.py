"""Lengths and points of time in milliseconds, the unit of message ids."""

from __future__ import annotations

import datetime as dt

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS


def time_at(ms: int) -> dt.datetime:
    """Return the time at some milliseconds since 1970, in UTC."""
    return dt.datetime.fromtimestamp(ms / 1000, tz=dt.UTC)
