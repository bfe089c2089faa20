"""Sums of a manifest for pages: counts, plan, periods, the largest channels and authors, both ends by time.

Postgres computes them, and they are stored once the manifest is frozen: a purge of 50,000 channels has at least as many
buckets. A page of a frozen purge whose summary is not stored (an older version) computes it. No statement takes a
second, and none is in the transaction that stores the summary, which locks the purge. A running scan keeps its own part
of it (`moderation.operations.preview.scan_places`).
"""

from __future__ import annotations

import datetime as dt
import heapq
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Sum

from chatstore.domain.buckets import BucketKey, bucket_days, bucket_of
from chatstore.domain.snowflakes import time_of
from chatstore.operations.gateway.timeline import last_day_of
from moderation.domain.planner import DeleteStrategy
from moderation.domain.states import PurgeState
from moderation.models import ManifestBucket, ManifestSummary, Purge
from moderation.operations.steps.claiming import brief_transaction, lock_purge

MAX_CHANNELS = 20
MAX_AUTHORS = 50
MAX_ENDS = 25
"""Numbers of channels, of authors, and of buckets at each end that are listed."""

OPEN_CHANNELS = "open_channels"
"""Key of the channels of which a running scan may find more; what has it is not the summary of a frozen manifest."""

NO_PLACES: dict[str, Any] = {"channel_count": 0, "channels": [], "periods": [], "newest": [], OPEN_CHANNELS: []}
"""What is stored of a scan that has found nothing so far."""

BUCKETS_AT_ONCE = 20_000
"""Buckets whose authors are added up by one statement: each may have hundreds."""


class BucketEntry(NamedTuple):
    """A bucket of a manifest. survivors: messages that are kept; None: not counted. first_id, last_id: of its ids."""

    channel_id: int
    bucket: int
    matched: int
    survivors: int | None
    first_id: int | None
    last_id: int | None


@dataclass(frozen=True, slots=True)
class ChannelCount:
    """Part of a channel. kept: messages kept in the same buckets; None: not counted. first_bucket: the oldest."""

    channel_id: int
    matched: int
    kept: int | None
    first_bucket: int


@dataclass(frozen=True, slots=True)
class PeriodCount:
    """Part of a bucket number, over all channels. is_partial: the kept messages of some channel were not counted."""

    bucket: int
    matched: int
    kept: int
    is_partial: bool


@dataclass(frozen=True, slots=True)
class Summary:
    """Sums of a manifest; of a running scan only channels, periods and the newest buckets.

    channels, authors: the largest, of `channel_count` and `author_count`. survivors: None: not counted.
    max_tombstones: that any bucket gains. strategies: (buckets, messages) by delete strategy.
    oldest, newest: the buckets with the first and the last messages.
    """

    channel_count: int
    channels: Sequence[ChannelCount]
    periods: Sequence[PeriodCount]
    count: int = 0
    bucket_count: int = 0
    author_count: int = 0
    authors: Sequence[tuple[int, int]] = ()
    survivors: int | None = None
    max_tombstones: int = 0
    strategies: Mapping[DeleteStrategy, tuple[int, int]] = field(default_factory=dict)
    first_id: int | None = None
    last_id: int | None = None
    oldest: Sequence[BucketKey] = ()
    newest: Sequence[BucketKey] = ()

    @property
    def first_at(self) -> dt.datetime | None:
        return None if self.first_id is None else time_of(self.first_id)

    @property
    def last_at(self) -> dt.datetime | None:
        return None if self.last_id is None else time_of(self.last_id)

    @property
    def only_period(self) -> tuple[dt.date, dt.date] | None:
        """Return the first and last day of the bucket with all messages, today at most; None if there are several."""
        if self.first_id is None or self.last_id is None:
            return None
        bucket = bucket_of(self.first_id)
        return (bucket_days(bucket)[0], last_day_of(bucket)) if bucket == bucket_of(self.last_id) else None

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Summary:
        """Return the summary that Postgres or a scan has computed."""
        return cls(
            **{
                **{name: part for name, part in value.items() if name != OPEN_CHANNELS},
                "channels": [ChannelCount(*row) for row in value["channels"]],
                "periods": [PeriodCount(*row) for row in value["periods"]],
                "authors": [(author, count) for author, count in value.get("authors", ())],
                "strategies": {DeleteStrategy(name): tuple(n) for name, n in value.get("strategies", {}).items()},
                "oldest": [(channel_id, bucket) for channel_id, bucket in value.get("oldest", ())],
                "newest": [(channel_id, bucket) for channel_id, bucket, *_ in value.get("newest", ())],
            }
        )


def _list(row: str, of: str) -> str:
    return f"(SELECT coalesce(jsonb_agg(jsonb_build_array({row})), '[]') FROM ({of}) AS listed)"


_SUM_BUCKETS = f"""
WITH entry AS MATERIALIZED (
    SELECT channel_id, bucket, count, survivors, first_id, last_id
    FROM {ManifestBucket._meta.db_table} WHERE purge_id = %(purge)s
)
SELECT jsonb_build_object(
'channel_count', (SELECT count(DISTINCT channel_id) FROM entry),
'channels', {
    _list(
        "channel_id, matched, kept, first",
        f'''
    SELECT channel_id, sum(count) AS matched, min(bucket) AS first,
        CASE WHEN bool_and(survivors IS NOT NULL) THEN sum(survivors) END AS kept
    FROM entry GROUP BY channel_id ORDER BY matched DESC, channel_id LIMIT {MAX_CHANNELS}''',
    )
},
'periods', {
    _list(
        "bucket, matched, kept, is_partial",
        '''
    SELECT bucket, sum(count) AS matched, coalesce(sum(survivors), 0) AS kept,
        bool_or(survivors IS NULL) AS is_partial
    FROM entry GROUP BY bucket ORDER BY bucket''',
    )
},
'count', (SELECT coalesce(sum(count), 0) FROM entry),
'bucket_count', (SELECT count(*) FROM entry),
'survivors', (SELECT CASE WHEN bool_and(survivors IS NOT NULL) THEN sum(survivors) END FROM entry),
'first_id', (SELECT min(first_id) FROM entry),
'last_id', (SELECT max(last_id) FROM entry),
'oldest', {
    _list(
        "channel_id, bucket",
        f'''
    SELECT channel_id, bucket FROM entry ORDER BY first_id NULLS FIRST LIMIT {MAX_ENDS}''',
    )
},
'newest', {
    _list(
        "channel_id, bucket",
        f'''
    SELECT channel_id, bucket FROM entry ORDER BY last_id DESC NULLS FIRST LIMIT {MAX_ENDS}''',
    )
})"""

_SUM_PARTS = f"""
WITH part AS MATERIALIZED (
    SELECT channel_id, bucket, part->>0 AS strategy, (part->>1)::bigint AS count, (part->>3)::bigint AS tombstones
    FROM {ManifestBucket._meta.db_table}, jsonb_array_elements(plan->'parts') AS part WHERE purge_id = %(purge)s
)
SELECT jsonb_build_object(
'max_tombstones', (SELECT coalesce(max(tombstones), 0) FROM (
    SELECT sum(tombstones) AS tombstones FROM part GROUP BY channel_id, bucket) AS of_bucket),
'strategies', (SELECT coalesce(jsonb_object_agg(strategy, jsonb_build_array(parts, messages)), '{{}}') FROM (
    SELECT strategy, count(*) AS parts, sum(count) AS messages FROM part GROUP BY strategy) AS used))
"""

_SUM_AUTHORS = f"""
WITH chunk AS MATERIALIZED (
    SELECT channel_id, bucket, authors FROM {ManifestBucket._meta.db_table}
    WHERE purge_id = %(purge)s AND (channel_id, bucket) > (%(channel)s, %(bucket)s)
    ORDER BY channel_id, bucket LIMIT {BUCKETS_AT_ONCE}
)
SELECT (SELECT jsonb_object_agg(key, matched) FROM (
        SELECT key, sum(value::bigint) AS matched FROM chunk, jsonb_each_text(authors) GROUP BY key) AS author),
    channel_id, bucket, (SELECT count(*) FROM chunk)
FROM chunk ORDER BY channel_id DESC, bucket DESC LIMIT 1
"""


def compute_summary(purge_id: int) -> dict[str, Any]:
    """Compute the summary of a manifest that does not change meanwhile, for `store_summary`."""
    authors = _sum_authors(purge_id)
    largest = heapq.nsmallest(MAX_AUTHORS, authors.items(), key=lambda each: (-each[1], each[0]))
    return {
        **_select_json(_SUM_BUCKETS, purge_id),
        **_select_json(_SUM_PARTS, purge_id),
        "author_count": len(authors),
        "authors": largest,
    }


def store_summary(purge_id: int, summary: dict[str, Any]) -> None:
    """Store the summary of a manifest that is frozen now, or of a scan so far, in one statement."""
    ManifestSummary.objects.bulk_create(
        [ManifestSummary(purge_id=purge_id, data=summary)],
        update_conflicts=True,
        unique_fields=["purge"],
        update_fields=["data"],
    )


def renew_summary(purge: Purge) -> None:
    """Compute and store the summary of a manifest that was changed, unless it was changed again meanwhile.

    purge: as it is after the change, which has deleted the summary. Until then, pages compute their own.
    """
    summary = compute_summary(purge.pk)
    with brief_transaction():
        present = lock_purge(purge.pk).manifest_hash
        if bytes(present or b"") == bytes(purge.manifest_hash or b""):
            store_summary(purge.pk, summary)


def _sum_authors(purge_id: int) -> Counter[int]:
    """Return the number of messages by author."""
    total: Counter[int] = Counter()
    channel_id, bucket = -1, 0
    with connection.cursor() as cursor:
        while True:
            cursor.execute(_SUM_AUTHORS, {"purge": purge_id, "channel": channel_id, "bucket": bucket})
            authors, channel_id, bucket, buckets = cursor.fetchone() or ("{}", channel_id, bucket, 0)
            total.update({int(author): count for author, count in json.loads(authors or "{}").items()})
            if buckets < BUCKETS_AT_ONCE:
                return total


def _select_json(sql: str, purge_id: int) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"purge": purge_id})
        (data,) = cursor.fetchone() or ("{}",)
        found: dict[str, Any] = json.loads(data)
        return found


def entries_in(
    purge: Purge, channel_ids: Sequence[int], *, buckets: tuple[int, int] | None = None
) -> list[BucketEntry]:
    """Return the buckets of a manifest in some channels. buckets: the first and the last one, inclusive."""
    entries = purge.manifest_buckets.filter(channel_id__in=channel_ids).order_by()
    if buckets is not None:
        entries = entries.filter(bucket__range=buckets)
    columns = ("channel_id", "bucket", "count", "survivors", "first_id", "last_id")
    return [BucketEntry(*row) for row in entries.values_list(*columns)]


def list_channels(purge: Purge, *, start: int) -> list[int]:
    """Return channels of a manifest, at most `MAX_CHANNELS`, from one on in the order of `Summary.channels`.

    All are added up and sorted in any case (30 ms for 50,000), so a key would save nothing over an offset.
    """
    sums = purge.manifest_buckets.order_by().values("channel_id").annotate(matched=Sum("count"))
    ordered = sums.order_by("-matched", "channel_id").values_list("channel_id", flat=True)
    return list(ordered[start : start + MAX_CHANNELS])


def stored_summaries(purge_ids: Collection[int]) -> dict[int, Summary]:
    """Return the stored summaries of frozen manifests, by the IDs of the purges; others are left out."""
    stored = ManifestSummary.objects.filter(purge__in=purge_ids).values_list("purge_id", "data")
    return {purge_id: Summary.from_json(data) for purge_id, data in stored if OPEN_CHANNELS not in data}


def summary_of(purge: Purge) -> Summary:
    """Return the stored summary, or else compute it; during the scan its places only."""
    stored = ManifestSummary.objects.filter(purge=purge).values_list("data", flat=True).first()
    if purge.state == PurgeState.SCANNING:
        return Summary.from_json(stored or NO_PLACES)
    if stored is None or OPEN_CHANNELS in stored:
        stored = compute_summary(purge.pk)
    return Summary.from_json(stored)
