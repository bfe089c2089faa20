"""Record of deletes by bucket and hour: input of the ledger reconciliation, and of what repairs must cover.

Counted by hour of Postgres's clock, one row per bucket. A count may be too high (an abandoned delete, a step
that two workers completed), never too low: deletes are recorded before they are sent, or in the transaction
that records their completion.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping

from django.db import connection
from django.db.models import Max

from chatstore.domain.buckets import BucketKey
from chatstore.models import BucketDeletes
from chatstore.operations.coordination.clock import postgres_now

MAX_SEND_DELAY_SECONDS = 30.0
"""Maximum delay between recording a delete and sending it: up to 12 s for a last read, and 4 s of attempts."""

_TABLE = BucketDeletes._meta.db_table
_INTO = f"INSERT INTO {_TABLE} (channel_id, bucket, hour, deletes, last_at, is_reconciled) "
_ADD = (
    "ON CONFLICT (channel_id, bucket, hour) DO UPDATE SET deletes = "
    f"{_TABLE}.deletes + EXCLUDED.deletes, last_at = GREATEST({_TABLE}.last_at, EXCLUDED.last_at), "
    "is_reconciled = FALSE"
)
_HOUR = "date_trunc('hour', clock_timestamp(), 'UTC')"
_NOTE = f"{_INTO} VALUES (%s, %s, {_HOUR}, %s, {{last_at}}, FALSE) {_ADD}"
# In the order of the key, so that two jobs never deadlock.
_NOTE_MANY = (
    f"{_INTO} SELECT channel_id, bucket, {_HOUR}, deletes, sent_by, FALSE "
    "FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS noted (channel_id, bucket, deletes), "
    f"(SELECT %s::timestamptz AS sent_by) AS sent ORDER BY channel_id, bucket {_ADD}"
)
_NOTE_AHEAD = _NOTE.format(last_at="clock_timestamp() + make_interval(secs => %s::double precision)")
_NOTE_SENT = _NOTE.format(last_at="%s")


def note_deletes(channel_id: int, bucket: int, count: int, *, sent_by: dt.datetime | None = None) -> None:
    """Add deletes (tombstones: of a row, both ends of a range, or a partition) to the bucket's current hour.

    sent_by: time by which the last of them was sent; None: they are sent within `MAX_SEND_DELAY_SECONDS` from now.
    """
    if count <= 0:
        return
    sql, time = (_NOTE_AHEAD, MAX_SEND_DELAY_SECONDS) if sent_by is None else (_NOTE_SENT, sent_by)
    with connection.cursor() as cursor:
        cursor.execute(sql, (channel_id, bucket, count, time))


def note_sent_deletes(counts: Mapping[BucketKey, int], *, sent_by: dt.datetime) -> None:
    """Add deletes of many buckets, as `note_deletes` does for one, in one statement."""
    noted = sorted((*key, count) for key, count in counts.items() if count > 0)
    if noted:
        with connection.cursor() as cursor:
            cursor.execute(_NOTE_MANY, [*map(list, zip(*noted, strict=True)), sent_by])


def due_buckets(
    *, limit: int, channel_id: int | None = None, before: int | None = None, since: int | None = None
) -> list[tuple[int, int, dt.datetime]]:
    """Return (channel, bucket, time by which its last delete was sent) of buckets not reconciled since.

    Longest waiting first. before, since: bucket numbers, exclusive upper and inclusive lower bound.
    """
    rows = BucketDeletes.objects.filter(is_reconciled=False)
    rows = rows if channel_id is None else rows.filter(channel_id=channel_id)
    rows = rows if before is None else rows.filter(bucket__lt=before)
    rows = rows if since is None else rows.filter(bucket__gte=since)
    found = rows.values("channel_id", "bucket").annotate(sent_by=Max("last_at")).filter(sent_by__lte=postgres_now())
    return list(
        found.order_by("sent_by", "channel_id", "bucket").values_list("channel_id", "bucket", "sent_by")[:limit]
    )


def last_delete(channel_id: int, bucket: int) -> dt.datetime | None:
    """Return when the last recorded delete of a bucket was sent; None: none is recorded."""
    rows = BucketDeletes.objects.filter(channel_id=channel_id, bucket=bucket)
    last: dt.datetime | None = rows.aggregate(last=Max("last_at"))["last"]
    return last


def last_deletes(keys: Collection[BucketKey]) -> dict[BucketKey, dt.datetime]:
    """Return `last_delete` of each bucket, without those of which none is recorded."""
    sql = (
        f"SELECT channel_id, bucket, max(last_at) FROM {_TABLE} WHERE (channel_id, bucket) IN "
        "(SELECT * FROM unnest(%s::bigint[], %s::int[])) GROUP BY channel_id, bucket"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, ([channel_id for channel_id, _ in keys], [bucket for _, bucket in keys]))
        return {(channel_id, bucket): last for channel_id, bucket, last in cursor.fetchall()}


def mark_reconciled(channel_id: int, bucket: int, *, began_at: dt.datetime) -> None:
    """Mark deletes as reconciled by a whole-bucket read that began at `began_at`, if they were sent before."""
    rows = BucketDeletes.objects.filter(channel_id=channel_id, bucket=bucket, is_reconciled=False)
    rows.filter(last_at__lte=began_at).update(is_reconciled=True)


def prune_deletes(covered_since: dt.datetime) -> int:
    """Delete records that are reconciled and older than the start of a repair that covers them; return how many."""
    gone, _ = BucketDeletes.objects.filter(is_reconciled=True, last_at__lt=covered_since).delete()
    return gone
