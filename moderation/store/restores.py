"""Writing of restored messages: the same ids, every column as it was quarantined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from chatstore.domain.buckets import BucketKey
from chatstore.store import cassandra
from chatstore.store.cassandra import UNSET
from chatstore.store.messages import COLUMNS
from moderation.domain.chunks import Row
from moderation.store.deletes import BATCH
from moderation.store.pace import Pace

ROWS_PER_BATCH = 500
TEXT_PER_BATCH = 1 << 16
"""Rows, and characters of text, per batch of usual rows. A third less work than with 100 rows, for the servers and
for the driver.
"""

WINDOW = 6
"""Batches in flight. More would only wait for each other, because they go to one partition."""

USUAL_COLUMNS = 4
"""message_id, author_id, type, content: most messages set no other column."""


def _insert_into(columns: Sequence[str]) -> str:
    return (
        f"INSERT INTO messages (channel_id, bucket, {', '.join(columns)}) "
        f"VALUES ({', '.join('?' * (len(columns) + 2))}) USING TIMESTAMP ?"
    )


INSERT_USUAL = _insert_into(COLUMNS[:USUAL_COLUMNS])
INSERT_WHOLE = _insert_into(COLUMNS)
_REST = len(COLUMNS) - USUAL_COLUMNS


def write_rows(
    channel_id: int,
    bucket: int,
    chunks: Iterable[Sequence[Row]],
    *,
    stamp_of: Callable[[Row], int],
    pace: Pace,
    consistency: int | None = None,
) -> None:
    """Write rows of one bucket in batches, each row at its own stamp (µs). None values are not bound.

    Raises `StoreUnavailable`. Idempotent for the same stamps.
    """
    jobs = _batches((((channel_id, bucket), rows) for rows in chunks), lambda _, row: stamp_of(row))
    cassandra.execute_batch_jobs(jobs, window=WINDOW, pace=pace.wait_and_throttle, consistency=consistency)


def write_rows_in(
    chunks: Iterable[tuple[BucketKey, Sequence[Row]]],
    *,
    stamp_of: Callable[[BucketKey, Row], int],
    pace: Pace,
    window: int = WINDOW,
) -> None:
    """Write rows of many buckets, as `write_rows` does for one. window: number of batches in flight."""
    jobs = _batches(chunks, stamp_of)
    cassandra.execute_batch_jobs(jobs, window=window, pace=pace.wait_and_throttle)


def _batches(
    chunks: Iterable[tuple[BucketKey, Sequence[Row]]], stamp_of: Callable[[BucketKey, Row], int]
) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    for (channel_id, bucket), rows in chunks:
        usual: list[tuple[Any, ...]] = []
        whole: list[tuple[Any, ...]] = []
        for row in rows:
            stamp = stamp_of((channel_id, bucket), row)
            if row[USUAL_COLUMNS : len(COLUMNS)].count(None) == _REST and None not in row[:USUAL_COLUMNS]:
                usual.append((channel_id, bucket, *row[:USUAL_COLUMNS], stamp))
            else:
                values = (UNSET if value is None else value for value in row[: len(COLUMNS)])
                whole.append((channel_id, bucket, *values, stamp))
        yield from ((INSERT_USUAL, batch) for batch in _by_text(usual))
        yield from ((INSERT_WHOLE, whole[start : start + BATCH]) for start in range(0, len(whole), BATCH))


def _by_text(rows: list[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield batches of usual rows, limited by number and by text. The text is the last column before the stamp."""
    start, text = 0, 0
    for end, row in enumerate(rows):
        text += len(row[-2])
        if end - start == ROWS_PER_BATCH or (text > TEXT_PER_BATCH and end > start):
            yield rows[start:end]
            start, text = end, len(row[-2])
    if rows:
        yield rows[start:]
