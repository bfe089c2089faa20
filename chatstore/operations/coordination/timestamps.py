"""Stamps (Cassandra write timestamps in µs) for writes and deletes of jobs: unique and increasing within a bucket."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection, transaction

from chatstore.domain.buckets import BucketKey
from chatstore.models import BucketStamp
from chatstore.operations.coordination.clock import check_stamp, wall_clock_us

_NOW_US = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_TABLE = BucketStamp._meta.db_table
_INTO = f"INSERT INTO {_TABLE} (channel_id, bucket, stamp)"
# The clock is read again if another transaction had locked the row: a stamp issued after its commit must not
# be older than the current time.
_LATER = (
    f"ON CONFLICT (channel_id, bucket) DO UPDATE SET stamp = GREATEST({_NOW_US}, {_TABLE}.stamp + 1) "
    "RETURNING channel_id, bucket, stamp"
)
_ISSUE = f"{_INTO} VALUES (%s, %s, {_NOW_US}) {_LATER}"
_ISSUE_MANY = (
    f"{_INTO} SELECT channel_id, bucket, {_NOW_US} "
    f"FROM unnest(%s::bigint[], %s::int[]) AS wanted (channel_id, bucket) {_LATER}"
)


def issue_stamp(channel_id: int, bucket: int) -> int:
    """Return a stamp in µs: max(Postgres now, the bucket's last one + 1).

    Within a caller's transaction the bucket's next stamp waits for its end, so a stamp that is stored with its step
    and one that is issued to another job never change order.

    Raises `WriteRefused` if it differs by more than five seconds from this process's clock. It is not stored then,
    because later stamps of the bucket would have to follow it.
    """
    return _issue(_ISSUE, (channel_id, bucket))[channel_id, bucket]


def issue_stamps(keys: Iterable[BucketKey]) -> dict[BucketKey, int]:
    """Return a stamp for each bucket, as `issue_stamp` does, in one statement."""
    # Always in the same order, so that two jobs never deadlock.
    wanted = sorted(set(keys))
    return _issue(_ISSUE_MANY, ([channel_id for channel_id, _ in wanted], [bucket for _, bucket in wanted]))


def _issue(sql: str, params: tuple[int | list[int], ...]) -> dict[BucketKey, int]:
    queried_us = wall_clock_us()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)
        stamps = {(int(channel_id), int(bucket)): int(stamp) for channel_id, bucket, stamp in cursor.fetchall()}
        for stamp in stamps.values():
            check_stamp(stamp, queried_us=queried_us)
    return stamps
