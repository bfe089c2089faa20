"""Ten-day buckets: `(channel_id, bucket)` is one Cassandra partition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter

from chatstore.domain.milliseconds import DAY_MS, HOUR_MS, MINUTE_MS
from chatstore.domain.snowflakes import EPOCH_MS, MAX_ID, MIN_ID, TIME_SHIFT, ms_of, time_of

BUCKET_MS = 10 * DAY_MS
"""Ten days. Discord's own choice: large enough to keep a partition under 100 MB."""

SEAL_AFTER_MS = HOUR_MS
"""A bucket is sealed an hour after its window ended: later posts take the marking path."""

LATE_AFTER_MS = 50 * MINUTE_MS
"""Posts take the marking path from ten minutes before their bucket can be sealed."""

_IDS_PER_BUCKET = BUCKET_MS << TIME_SHIFT

BucketKey = tuple[int, int]
"""(channel id, bucket): a partition of `messages`."""


def bucket_of(message_id: int) -> int:
    """Return the bucket of a message id; negative for ids before 2015."""
    return message_id // _IDS_PER_BUCKET


def bucket_at(ms: int) -> int:
    """Return the bucket that is open at a Unix millisecond."""
    return (ms - EPOCH_MS) // BUCKET_MS


def bucket_ids(bucket: int) -> tuple[int, int]:
    """Return the first and the last id that a bucket can contain, both inclusive.

    The oldest and the newest bucket are cut off at the bounds of 64 bits.
    """
    first = bucket * _IDS_PER_BUCKET
    return max(first, MIN_ID), min(first + _IDS_PER_BUCKET - 1, MAX_ID)


def bucket_window(bucket: int) -> tuple[dt.datetime, dt.datetime]:
    """Return the UTC datetimes at which a bucket's window begins (inclusive) and ends (exclusive)."""
    return time_of(bucket * _IDS_PER_BUCKET), time_of((bucket + 1) * _IDS_PER_BUCKET)


def bucket_days(bucket: int) -> tuple[dt.date, dt.date]:
    """Return the first and the last day of a bucket's window, in UTC."""
    begin, end = bucket_window(bucket)
    return begin.date(), end.date() - dt.timedelta(days=1)


def format_bucket(channel_id: int, bucket: int) -> str:
    """Return "<channel>:<bucket>": the partition's key as nodetool takes it, and the subject of findings and runs."""
    return f"{channel_id}:{bucket}"


def is_sealed(bucket: int, *, now_ms: int) -> bool:
    """Return whether the bucket's window ended more than 60 minutes before `now_ms`."""
    return EPOCH_MS + (bucket + 1) * BUCKET_MS + SEAL_AFTER_MS < now_ms


def is_late(message_id: int, *, now_ms: int) -> bool:
    """Return whether a message written at `now_ms` could belong to a bucket that is already sealed in the ledger.

    Such late writes clear the ledger, before and after the write.
    """
    return ms_of(message_id) < now_ms - LATE_AFTER_MS


def join_keys(sizes: Mapping[BucketKey, int], *, limit: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield (channel ids, buckets) of buckets that one statement can read: one channel, or one bucket of many channels.

    sizes: of each bucket; together at most `limit` for a statement, unless a single one is larger.
    """
    # A large channel has many buckets; many small channels share a few.
    by_channel = len({channel_id for channel_id, _ in sizes}) < len({bucket for _, bucket in sizes})
    shared, listed = (0, 1) if by_channel else (1, 0)
    for one, keys in groupby(sorted(sizes, key=itemgetter(shared, listed)), key=itemgetter(shared)):
        some: list[int] = []
        size = 0
        for key in keys:
            if some and size + sizes[key] > limit:
                yield ([one], some) if by_channel else (some, [one])
                some, size = [], 0
            some.append(key[listed])
            size += sizes[key]
        yield ([one], some) if by_channel else (some, [one])
