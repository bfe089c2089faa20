"""Formatting of datetimes in text for people."""

from __future__ import annotations

import datetime as dt


def format_datetime(when: dt.datetime) -> str:
    """Format an aware datetime to the minute, without the year: "3 May, 12:00 UTC"."""
    utc = when.astimezone(dt.UTC)
    return f"{utc.day} {utc:%B, %H:%M} UTC"
