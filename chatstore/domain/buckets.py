"""Buckets of ten days: `(channel_id, bucket)` is one Cassandra partition."""

from __future__ import annotations

import datetime as dt

from chatstore.domain.snowflakes import EPOCH_MS, MAX_ID, MIN_ID, TIME_SHIFT, ms_of, time_of

BUCKET_MS = 864_000_000
"""Ten days. Discord's own choice: large enough to keep a partition under 100 MB."""

SEAL_AFTER_MS = 3_600_000
"""A bucket is sealed an hour after its window ended: later posts take the marking path."""

LATE_AFTER_MS = 50 * 60 * 1000
"""Ten minutes before its bucket can be sealed, a post takes the marking path."""

_IDS_PER_BUCKET = BUCKET_MS << TIME_SHIFT

BucketKey = tuple[int, int]
"""(channel id, bucket): a partition of `messages`."""


def bucket_of(message_id: int) -> int:
    """The bucket a message id belongs to; negative before 2015."""
    return message_id // _IDS_PER_BUCKET


def bucket_at(ms: int) -> int:
    """The bucket that is open at a Unix millisecond."""
    return (ms - EPOCH_MS) // BUCKET_MS


def bucket_ids(bucket: int) -> tuple[int, int]:
    """The first and the last id that a bucket can hold, both inclusive.

    The oldest and the newest bucket end where 64 bits do.
    """
    first = bucket * _IDS_PER_BUCKET
    return max(first, MIN_ID), min(first + _IDS_PER_BUCKET - 1, MAX_ID)


def bucket_window(bucket: int) -> tuple[dt.datetime, dt.datetime]:
    """The UTC moments at which a bucket's window begins (inclusive) and ends (exclusive)."""
    return time_of(bucket * _IDS_PER_BUCKET), time_of((bucket + 1) * _IDS_PER_BUCKET)


def bucket_days(bucket: int) -> tuple[dt.date, dt.date]:
    """The first and the last day of a bucket's window, in UTC."""
    begin, end = bucket_window(bucket)
    return begin.date(), end.date() - dt.timedelta(days=1)


def days_in_words(first: dt.date, last: dt.date) -> str:
    """A span of days as people say it: "11–20 March 2024"."""
    if first == last:
        return f"{first.day} {first:%B %Y}"
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}–{last.day} {last:%B %Y}"
    if first.year == last.year:
        return f"{first.day} {first:%B} – {last.day} {last:%B %Y}"
    return f"{first.day} {first:%B %Y} – {last.day} {last:%B %Y}"


def is_sealed(bucket: int, *, now_ms: int) -> bool:
    """Whether the bucket's window ended over 60 minutes before `now_ms`."""
    return EPOCH_MS + (bucket + 1) * BUCKET_MS + SEAL_AFTER_MS < now_ms


def is_late(message_id: int, *, now_ms: int) -> bool:
    """Whether a message written at `now_ms` could come into a bucket of which more is known than of open ones.

    What is written so late clears the ledger, before and after.
    """
    return ms_of(message_id) < now_ms - LATE_AFTER_MS
