"""Rows of the table of all channels: which ones are to be refreshed, and what Postgres itself knows of them.

Whatever measures a channel or ends a purge there marks its row, in one statement for all its channels; the monitor
copies the figures (`chatstore.operations.health.summaries`). Rows are locked in the order of their keys, so that two
jobs never deadlock.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from django.db import connection

from chatstore.models import BucketDeletes, ChannelSummary

_TABLE, _DELETES = ChannelSummary._meta.db_table, BucketDeletes._meta.db_table

_MARK = (
    f"WITH marked AS (SELECT channel_id FROM {_TABLE} WHERE channel_id = ANY(%s) AND due_at IS NULL "
    f"ORDER BY channel_id FOR UPDATE) UPDATE {_TABLE} AS summary SET due_at = clock_timestamp() "
    "FROM marked WHERE summary.channel_id = marked.channel_id"
)
_NOTE_PURGE = (
    f"WITH purged AS (SELECT channel_id FROM {_TABLE} WHERE channel_id = ANY(%s) ORDER BY channel_id FOR UPDATE) "
    f"UPDATE {_TABLE} AS summary SET last_purge_id = %s, last_purged_at = clock_timestamp(), "
    "due_at = COALESCE(due_at, clock_timestamp()) FROM purged WHERE summary.channel_id = purged.channel_id"
)
_COUNT_DELETES = (
    f"WITH uncovered AS (SELECT channel_id, sum(deletes) AS number FROM {_DELETES} "
    "WHERE last_at >= %(since)s GROUP BY channel_id), "
    f"changed AS (SELECT channel_id, number FROM {_TABLE} AS summary JOIN uncovered USING (channel_id) "
    "WHERE uncovered_deletes IS DISTINCT FROM number ORDER BY channel_id FOR UPDATE OF summary) "
    f"UPDATE {_TABLE} AS summary SET uncovered_deletes = number, uncovered_at = clock_timestamp() "
    "FROM changed WHERE summary.channel_id = changed.channel_id"
)
# The condition on the first two is that of the index by which the table is sorted.
_COUNT_NONE = (
    f"WITH covered AS (SELECT channel_id FROM {_TABLE} AS summary "
    "WHERE (COALESCE(uncovered_deletes, -1) < 0 OR COALESCE(uncovered_deletes, -1) > 0) AND NOT EXISTS "
    f"(SELECT FROM {_DELETES} AS deletes WHERE deletes.channel_id = summary.channel_id AND last_at >= %(since)s) "
    "ORDER BY channel_id FOR UPDATE OF summary) "
    f"UPDATE {_TABLE} AS summary SET uncovered_deletes = 0, uncovered_at = clock_timestamp() "
    "FROM covered WHERE summary.channel_id = covered.channel_id"
)


def mark_due(channel_ids: Collection[int]) -> None:
    """Mark the rows of channels whose figures have changed. Channels without a row are ignored."""
    if channel_ids:
        with connection.cursor() as cursor:
            cursor.execute(_MARK, [list(channel_ids)])


def note_purge(purge_id: int, channel_ids: Collection[int]) -> None:
    """Record the last purge of its channels when it ends, and mark their rows."""
    if channel_ids:
        with connection.cursor() as cursor:
            cursor.execute(_NOTE_PURGE, [list(channel_ids), purge_id])


def count_uncovered(since: dt.datetime | None) -> None:
    """Count the deletes of every channel that no repair covers; only rows whose number has changed are written.

    since: start of the last repair that covers everything; None: there was none.
    """
    with connection.cursor() as cursor:
        for sql in (_COUNT_DELETES, _COUNT_NONE):
            cursor.execute(sql, {"since": since or dt.datetime.min.replace(tzinfo=dt.UTC)})
