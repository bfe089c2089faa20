"""Writes removed messages again: the same ids, every column as it was kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from chatstore.store import cassandra
from chatstore.store.cassandra import UNSET
from chatstore.store.messages import COLUMNS
from moderation.domain.chunks import Row
from moderation.store.deletes import BATCH
from moderation.store.pace import Pace

USUAL_COLUMNS = 4
"""message_id, author_id, type, content: most messages have nothing else set."""


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
    """Writes rows of one bucket in batches, each at its own stamp (µs); what is None is not bound.

    Raises `StoreUnavailable`; written twice at the same stamps they are the same rows.
    """
    jobs = _batches(channel_id, bucket, chunks, stamp_of)
    cassandra.execute_batch_jobs(jobs, pace=pace.wait_and_rest, consistency=consistency)


def _batches(
    channel_id: int, bucket: int, chunks: Iterable[Sequence[Row]], stamp_of: Callable[[Row], int]
) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    for rows in chunks:
        usual: list[tuple[Any, ...]] = []
        whole: list[tuple[Any, ...]] = []
        for row in rows:
            stamp = stamp_of(row)
            if row[USUAL_COLUMNS : len(COLUMNS)].count(None) == _REST and None not in row[:USUAL_COLUMNS]:
                usual.append((channel_id, bucket, *row[:USUAL_COLUMNS], stamp))
            else:
                values = (UNSET if value is None else value for value in row[: len(COLUMNS)])
                whole.append((channel_id, bucket, *values, stamp))
        for cql, bound in ((INSERT_USUAL, usual), (INSERT_WHOLE, whole)):
            for start in range(0, len(bound), BATCH):
                yield cql, bound[start : start + BATCH]
