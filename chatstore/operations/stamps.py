"""Stamps for what jobs write and delete: no two alike in a bucket, each later than the last."""

from __future__ import annotations

from django.db import connection

from chatstore.models import BucketStamp

_NOW_US = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_TABLE = BucketStamp._meta.db_table
# The clock is read a second time where another transaction held the row: what is issued
# after that one's commit must not be older than now.
_ISSUE = (
    f"INSERT INTO {_TABLE} (channel_id, bucket, stamp) VALUES (%s, %s, {_NOW_US}) "
    f"ON CONFLICT (channel_id, bucket) DO UPDATE SET stamp = GREATEST({_NOW_US}, {_TABLE}.stamp + 1) "
    "RETURNING stamp"
)


def issue_stamp(channel_id: int, bucket: int) -> int:
    """A stamp in µs: max(Postgres now, the bucket's last one + 1).

    Within a caller's transaction the bucket's next stamp waits for its end, so a stamp that
    is stored with its step and one that is issued to another job never change places.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ISSUE, (channel_id, bucket))
        row = cursor.fetchone()
    return int(row[0])
