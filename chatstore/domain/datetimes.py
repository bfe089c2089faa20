"""Moments as people say them."""

from __future__ import annotations

import datetime as dt


def say_moment(moment: dt.datetime) -> str:
    """An aware moment to the minute, lately enough to need no year: "3 May, 12:00 UTC"."""
    utc = moment.astimezone(dt.UTC)
    return f"{utc.day} {utc:%B, %H:%M} UTC"
