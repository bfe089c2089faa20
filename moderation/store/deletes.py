"""Delete statements of a purge. Each has a stamp that was stored beforehand, so sending it twice is harmless."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from chatstore.domain.buckets import BucketKey
from chatstore.store import cassandra
from moderation.domain.planner import IdRange
from moderation.store.pace import Pace

DROP = "DELETE FROM messages USING TIMESTAMP ? WHERE channel_id = ? AND bucket = ?"
RANGE = f"{DROP} AND message_id >= ? AND message_id <= ?"
ROW = f"{DROP} AND message_id = ?"

BATCH = 100
"""Statements of one partition per UNLOGGED batch; 50-100 is the fastest measured."""

MAX_BUCKETS = 5
"""Buckets per batch: half of what one statement for each costs. Cassandra warns of more than ten, or of 5 KiB."""


def drop_bucket(channel_id: int, bucket: int, *, stamp: int) -> None:
    """Delete the whole partition as of `stamp`."""
    cassandra.execute(DROP, (stamp, channel_id, bucket))


def delete_ranges(channel_id: int, bucket: int, ranges: Sequence[IdRange], *, stamp: int, pace: Pace) -> None:
    """Delete the ranges as of `stamp`; single ids as rows (1 tombstone instead of 2)."""
    singles = [(stamp, channel_id, bucket, first) for first, last in ranges if first == last]
    wide = [(stamp, channel_id, bucket, first, last) for first, last in ranges if first != last]
    for cql, rows in ((ROW, singles), (RANGE, wide)):
        groups = (rows[i : i + BATCH] for i in range(0, len(rows), BATCH))
        cassandra.execute_batches(cql, groups, pace=pace.wait)


def delete_rows(channel_id: int, bucket: int, rows: Iterable[Sequence[tuple[int, int]]], *, pace: Pace) -> None:
    """Delete rows by (message id, own WRITETIME): exactly the quarantined versions, independent of any clock."""
    delete_rows_in((((channel_id, bucket), chunk) for chunk in rows), pace=pace)


def delete_rows_in(rows: Iterable[tuple[BucketKey, Sequence[tuple[int, int]]]], *, pace: Pace) -> None:
    """Delete rows of many buckets, as `delete_rows` does for one; few rows of several buckets together.

    If `rows` raises an error, the rows it has yielded before are sent nevertheless.
    """
    cassandra.execute_batches(ROW, _batches(rows), pace=pace.wait)


def _batches(rows: Iterable[tuple[BucketKey, Sequence[tuple[int, int]]]]) -> Iterator[list[tuple[int, ...]]]:
    together: list[tuple[int, ...]] = []
    parts = 0
    try:
        for key, chunk in rows:
            for start in range(0, len(chunk), BATCH):
                part = [(stamp, *key, message_id) for message_id, stamp in chunk[start : start + BATCH]]
                if together and (parts == MAX_BUCKETS or len(together) + len(part) > BATCH):
                    yield together
                    together, parts = [], 0
                together += part
                parts += 1
    except Exception:
        # The caller counts what it has yielded as sent.
        if together:
            yield together
        raise
    if together:
        yield together
