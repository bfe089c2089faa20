"""Bulk reads and writes over many small buckets, of one channel or of many.

One statement after the other costs a round trip each; for a thousand threads of a dozen messages they would dominate
the import.
"""

from __future__ import annotations

import datetime as dt
import itertools
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from django.conf import settings

from chatstore.domain.buckets import BucketKey, join_keys
from chatstore.domain.live import Live, LiveTuple, stamp_of_live
from chatstore.domain.withdrawals import Withdrawals
from chatstore.store import cassandra, ledger, messages, withdrawn

Item = TypeVar("Item")

MAX_LISTED_IDS_PER_BUCKET = 100
"""Up to this count, a bucket's ids are read by key (in one statement); above it as an interval."""

CONCURRENT_WHOLE_READS = 4
"""Concurrent reads of whole buckets: the servers are the bottleneck. Small buckets cost only a round trip, and more of
them are read at once.
"""

_SET_LIVE = "INSERT INTO bucket_ledger (channel_id, bucket, live) VALUES (?, ?, ?) USING TIMESTAMP ?"
_WITHDRAWN = (
    "SELECT channel_id, bucket, message_id, author_id, claimed_by FROM withdrawn WHERE channel_id IN ? AND bucket IN ?"
)
_EDITED = (
    "SELECT message_id, author_id, edited_at FROM messages WHERE channel_id = ? AND bucket = ? AND message_id IN ?"
)
_FIGURE = (
    "INSERT INTO bucket_figures (channel_id, bucket, figure, value, source, measured_at) "
    "VALUES (?, ?, 'live_rows', ?, ?, ?) USING TIMESTAMP ?"
)
_ENSURE = "INSERT INTO bucket_ledger (channel_id, bucket) VALUES (?, ?)"
_BOUNDS = (
    "SELECT min(message_id), max(message_id), count(*), count(author_id) FROM messages "
    "WHERE channel_id = ? AND bucket = ?"
)
_LIVE_STAMPS = "SELECT channel_id, bucket, WRITETIME(live) FROM bucket_ledger WHERE channel_id IN ?"

PARTITIONS_PER_STATEMENT = 20
"""Small partitions per statement; the coordinator reads them in parallel."""

BATCH_ROWS = 100
BATCH_CHANNELS = 10
"""Channels per batch of ledger rows or figures, each channel being one partition; Cassandra warns of batches of more
than ten partitions.
"""


def ensure_rows_in(channel_id: int, buckets: Iterable[int]) -> None:
    """Write the buckets' ledger rows, before their first messages."""
    _write_by_channel(_ENSURE, ((channel_id, bucket) for bucket in buckets))
    ledger.expire_cache(channel_id)


def read_live_stamps(channel_ids: Sequence[int]) -> dict[BucketKey, int]:
    """Return the write timestamp (µs) of `live` for every bucket that has a ledger row; 0 where `live` is not set."""
    answers = cassandra.execute_window(
        (_LIVE_STAMPS, (some,)) for some in _chunks(channel_ids, PARTITIONS_PER_STATEMENT)
    )
    return {(channel_id, bucket): stamp or 0 for rows in answers for channel_id, bucket, stamp in rows}


def set_live_in(lives: Mapping[BucketKey, Live], *, read_began_us: int) -> None:
    """Set the bounds of each bucket, as `ledger.set_live` does for one."""
    stamp = stamp_of_live(read_began_us=read_began_us, skew_seconds=settings.CLOCK_SKEW_SECONDS)
    _set_live((*key, live.as_tuple(), stamp) for key, live in lives.items())


def clear_live_in(keys: Iterable[BucketKey]) -> None:
    """Clear the bounds of each bucket, as `ledger.clear_live` does for one."""
    clear_live_at(dict.fromkeys(keys, time.time_ns() // 1000))


def clear_live_at(stamps: Mapping[BucketKey, int]) -> None:
    """Clear the bounds at a stamp (µs) per bucket, which must be newer than that of the current value."""
    _set_live((*key, (None, None, None), stamp) for key, stamp in stamps.items())


def _set_live(rows: Iterable[tuple[int, int, LiveTuple, int]]) -> None:
    written = _write_by_channel(_SET_LIVE, rows)
    for channel_id in written:
        ledger.expire_cache(channel_id)


def _write_by_channel(cql: str, rows: Iterable[cassandra.Row]) -> set[int]:
    """Write rows that begin with their channel's id, in batches of few channels; return the channels."""
    ordered = sorted(rows, key=lambda row: row[0])
    groups = [list(group) for _, group in itertools.groupby(ordered, key=lambda row: row[0])]
    few = (list(itertools.chain.from_iterable(some)) for some in _chunks(groups, BATCH_CHANNELS))
    cassandra.execute_batches(cql, (some for together in few for some in _chunks(together, BATCH_ROWS)))
    return {group[0][0] for group in groups}


def _chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def withdrawn_in(keys: Sequence[BucketKey]) -> dict[BucketKey, Withdrawals]:
    """Return what authors withdrew, by bucket; buckets without any are left out."""
    reads = join_keys(dict.fromkeys(keys, 1), limit=PARTITIONS_PER_STATEMENT)
    noted: dict[BucketKey, list[cassandra.Row]] = defaultdict(list)
    for rows in cassandra.execute_window((_WITHDRAWN, each) for each in reads):
        for channel_id, bucket, *row in rows:
            noted[channel_id, bucket].append(tuple(row))
    return {key: withdrawn.collect(rows) for key, rows in noted.items()}


def read_edited(ids: Mapping[BucketKey, Sequence[int]]) -> dict[BucketKey, dict[int, dt.datetime | None]]:
    """Return the edited time (None: never) of each of the given messages that is live, by bucket.

    `ids`: by bucket, ascending. A row without an author is not live.
    """
    few = {key: wanted for key, wanted in ids.items() if 0 < len(wanted) <= MAX_LISTED_IDS_PER_BUCKET}
    answers = cassandra.execute_window((_EDITED, (*key, list(wanted))) for key, wanted in few.items())
    edited = {key: dict(_pick_edited(rows, None)) for key, rows in zip(few, answers, strict=True)}
    for key in ids.keys() - few.keys():
        wanted = set(ids[key])
        if not wanted:
            continue
        pages = messages.iterate_rows(
            *key,
            first=ids[key][0],
            last=ids[key][-1],
            columns=("message_id", "author_id", "edited_at"),
            fetch_size=cassandra.FETCH_SIZE,
        )
        edited[key] = {}
        for rows in pages:
            edited[key].update(_pick_edited(rows, wanted))
    return edited


def _pick_edited(rows: Iterable[cassandra.Row], wanted: set[int] | None) -> Iterable[tuple[int, dt.datetime | None]]:
    for message_id, author_id, edited_at in rows:
        if author_id is not None and (wanted is None or message_id in wanted):
            yield message_id, edited_at.replace(tzinfo=dt.UTC) if edited_at else None


def read_bounds_in(
    keys: Collection[BucketKey], *, window: int = CONCURRENT_WHOLE_READS
) -> dict[BucketKey, tuple[int | None, int | None, int, int]]:
    """Return lowest id, highest id, rows and rows with an author of each whole bucket, at quorum.

    Aggregated on the servers. Raises `TooManyTombstones` if one of the buckets can't be read that way.
    """
    rows = cassandra.execute_window(((_BOUNDS, key) for key in keys), window=window)
    return {key: tuple(found[0]) for key, found in zip(keys, rows, strict=True)}


def note_live_rows_in(counts: Mapping[BucketKey, int], *, source: str, measured_at: dt.datetime) -> None:
    """Store the number of live messages of each bucket, as `figures.note_figures` does for one."""
    stamp = int(measured_at.timestamp() * 1_000_000)
    _write_by_channel(_FIGURE, ((*key, count, source, measured_at, stamp) for key, count in counts.items()))
