"""Index of where an author has posted: a row per author, bucket and channel, written before the message."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from chatstore.domain.buckets import bucket_of
from chatstore.domain.snowflakes import MAX_ID, MIN_ID
from chatstore.store import cassandra
from chatstore.store.lru_set import LRUSet

_INSERT = "INSERT INTO author_buckets (author_id, bucket, channel_id) VALUES (?, ?, ?)"
_SELECT = "SELECT bucket, channel_id FROM author_buckets WHERE author_id = ? AND bucket >= ? AND bucket <= ?"
_SELECT_OLDEST = "SELECT bucket, channel_id FROM author_buckets WHERE author_id = ? ORDER BY bucket ASC LIMIT ?"

BATCH_ROWS = 100

AUTHORS_PER_READ = 100

OLDEST_ROWS = 16
"""Rows that are read of an author to find the oldest bucket: few post in more channels in their first ten days."""

NEWEST_ROWS = 16
"""Rows that are read of an author to find the newest place of some channels."""

_SELECT_NEWEST = (
    f"SELECT author_id, bucket, channel_id FROM author_buckets WHERE author_id IN ? PER PARTITION LIMIT {NEWEST_ROWS}"
)

_written = LRUSet(200_000)


def ensure_author_bucket(author_id: int, channel_id: int, bucket: int) -> None:
    """Record that the author posts there; once per process."""
    key = (author_id, bucket, channel_id)
    if key not in _written:
        cassandra.execute(_INSERT, key)
        _written.add(key)


def ensure_author_buckets(keys: set[tuple[int, int, int]]) -> None:
    """Record many (author id, bucket, channel id), without those that this process has written already."""
    new = sorted(key for key in keys if key not in _written)
    cassandra.execute_batches(_INSERT, _group_by_author(new))
    for key in new:
        _written.add(key)


def _group_by_author(keys: list[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Yield batches of at most `BATCH_ROWS` for one author each, since an author is a partition."""
    for _, group in itertools.groupby(keys, key=lambda key: key[0]):
        while chunk := list(itertools.islice(group, BATCH_ROWS)):
            yield chunk


def author_buckets(author_id: int) -> Iterator[tuple[int, int]]:
    """Yield (bucket, channel id) of every place where the author has posted, newest bucket first."""
    return buckets_of_authors([author_id], first=bucket_of(MIN_ID), last=bucket_of(MAX_ID))


def buckets_of_authors(author_ids: Iterable[int], *, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the same for several authors, one after the other; first, last: inclusive bounds of the buckets."""
    jobs = ((_SELECT, (author_id, first, last)) for author_id in author_ids)
    for pages in cassandra.iterate_each(jobs):
        for rows in pages:
            yield from rows


def newest_places(author_ids: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """Return the newest `NEWEST_ROWS` (bucket, channel id) of each author; none of those who have not posted."""
    parts = (author_ids[start : start + AUTHORS_PER_READ] for start in range(0, len(author_ids), AUTHORS_PER_READ))
    found: dict[int, list[tuple[int, int]]] = {author_id: [] for author_id in author_ids}
    for rows in cassandra.execute_window((_SELECT_NEWEST, (list(part),)) for part in parts):
        for author_id, bucket, channel_id in rows:
            found[author_id].append((bucket, channel_id))
    return found


def oldest_places(author_ids: Sequence[int]) -> dict[int, tuple[int, list[int]]]:
    """Return the oldest bucket in which each author has posted, with their channels there.

    Authors who have not posted are left out. A place is recorded before its first message, so that a message may be
    missing there.
    """
    found = cassandra.execute_window((_SELECT_OLDEST, (author_id, OLDEST_ROWS)) for author_id in author_ids)
    oldest = {}
    more = {}
    for author_id, rows in zip(author_ids, found, strict=True):
        if not rows:
            continue
        bucket = rows[0][0]
        oldest[author_id] = bucket, [channel_id for at, channel_id in rows if at == bucket]
        if len(oldest[author_id][1]) == OLDEST_ROWS:
            more[author_id] = bucket
    rest = cassandra.execute_window((_SELECT, (author_id, bucket, bucket)) for author_id, bucket in more.items())
    for (author_id, bucket), rows in zip(more.items(), rest, strict=True):
        oldest[author_id] = bucket, [channel_id for _, channel_id in rows]
    return oldest
