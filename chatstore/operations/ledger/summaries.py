"""Rows of the table of all channels: which ones are to be refreshed, and what Postgres itself knows of them.

Whatever measures a channel or ends a purge there marks its row, in one statement for all its channels; the monitor
copies the figures (`chatstore.operations.health.summaries`). Rows are locked in the order of their keys, so that two
jobs never deadlock.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping

from django.db import connection
from django.db.models import Q, Sum
from django.db.models.functions import Coalesce

from chatstore.models import BucketDeletes, ChannelSummary
from chatstore.models.maintenance import UNKNOWN_FIRST

CHANNELS_AT_ONCE = 2_000
"""Rows that one statement should update, where most channels may have one: 50,000 took 2.5 s on a busy machine."""

_TABLE = ChannelSummary._meta.db_table

_MARK = (
    f"WITH marked AS (SELECT channel_id FROM {_TABLE} WHERE channel_id = ANY(%s) "
    "AND (due_at IS NULL OR due_at > clock_timestamp()) "
    f"ORDER BY channel_id FOR UPDATE) UPDATE {_TABLE} AS summary SET due_at = clock_timestamp() "
    "FROM marked WHERE summary.channel_id = marked.channel_id"
)
_NOTE_PURGE = (
    f"WITH purged AS (SELECT channel_id, ended_at FROM {_TABLE} "
    "JOIN unnest(%s::bigint[], %s::timestamptz[]) AS ended (channel_id, ended_at) USING (channel_id) "
    f"WHERE last_purged_at IS NULL OR last_purged_at <= ended_at ORDER BY channel_id FOR UPDATE OF {_TABLE}) "
    f"UPDATE {_TABLE} AS summary SET last_purge_id = %s, last_purged_at = ended_at "
    "FROM purged WHERE summary.channel_id = purged.channel_id"
)
_SET_UNCOVERED = (
    "WITH counted AS (SELECT channel_id, number FROM unnest(%s::bigint[], %s::bigint[]) AS one (channel_id, number) "
    f"JOIN {_TABLE} AS summary USING (channel_id) ORDER BY channel_id FOR UPDATE OF summary) "
    f"UPDATE {_TABLE} AS summary SET uncovered_deletes = number, uncovered_at = clock_timestamp() "
    "FROM counted WHERE summary.channel_id = counted.channel_id"
)


def mark_due(channel_ids: Collection[int]) -> None:
    """Mark the rows of channels whose figures have changed. Channels without a row are ignored."""
    if channel_ids:
        with connection.cursor() as cursor:
            cursor.execute(_MARK, [list(channel_ids)])


def note_purge(purge_id: int, ended_at: Mapping[int, dt.datetime]) -> None:
    """Record the last purge of its channels when it ends, and mark their rows.

    ended_at: by channel, when its last step there ended; a later purge of the channel stays recorded.
    """
    if ended_at:
        with connection.cursor() as cursor:
            cursor.execute(_NOTE_PURGE, [list(ended_at), list(ended_at.values()), purge_id])
        mark_due(ended_at)


def count_uncovered(since: dt.datetime | None, *, channel_ids: Collection[int] | None = None) -> None:
    """Count the deletes of channels that no repair covers; only rows whose number has changed are written.

    since: start of the last repair that covers everything; None: there was none. channel_ids: None for all.
    """
    rows = BucketDeletes.objects.all() if since is None else BucketDeletes.objects.filter(last_at__gte=since)
    # All but those with 0, by the index that the table is sorted by.
    summaries = ChannelSummary.objects.alias(key=Coalesce("uncovered_deletes", UNKNOWN_FIRST))
    if channel_ids is not None:
        rows, summaries = rows.filter(channel_id__in=channel_ids), summaries.filter(channel_id__in=channel_ids)
    sums = rows.values("channel_id").annotate(number=Sum("deletes")).order_by()
    deletes: dict[int, int] = dict(sums.values_list("channel_id", "number"))
    stored = dict(summaries.filter(Q(key__lt=0) | Q(key__gt=0)).values_list("channel_id", "uncovered_deletes"))
    changed = {channel_id: number for channel_id, number in deletes.items() if stored.get(channel_id, 0) != number}
    changed |= dict.fromkeys(stored.keys() - deletes.keys(), 0)
    changed_ids = sorted(changed)
    # Each part in a transaction of its own. After a crash, the next count finds what is left.
    for start in range(0, len(changed_ids), CHANNELS_AT_ONCE):
        some = changed_ids[start : start + CHANNELS_AT_ONCE]
        with connection.cursor() as cursor:
            cursor.execute(_SET_UNCOVERED, [some, [changed[channel_id] for channel_id in some]])
