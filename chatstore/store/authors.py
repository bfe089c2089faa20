"""Where an author has posted: a row per author, bucket and channel, written before the message."""

from __future__ import annotations

from collections.abc import Iterator

from chatstore.store import cassandra
from chatstore.store.remembered import Remembered

_INSERT = "INSERT INTO author_buckets (author_id, bucket, channel_id) VALUES (?, ?, ?)"
_SELECT = "SELECT bucket, channel_id FROM author_buckets WHERE author_id = ?"

_written = Remembered(200_000)


def ensure_author_bucket(author_id: int, channel_id: int, bucket: int) -> None:
    """Note that the author posts there; once a process."""
    key = (author_id, bucket, channel_id)
    if key not in _written:
        cassandra.execute(_INSERT, key)
        _written.add(key)


def ensure_author_buckets(keys: set[tuple[int, int, int]]) -> None:
    """Note many (author id, bucket, channel id) at once, those that this process has not yet."""
    new = [key for key in keys if key not in _written]
    for _ in cassandra.execute_window((_INSERT, key) for key in new):
        pass
    for key in new:
        _written.add(key)


def author_buckets(author_id: int) -> Iterator[tuple[int, int]]:
    """(bucket, channel id) of every place where the author has posted, newest bucket first."""
    for rows in cassandra.iterate(_SELECT, (author_id,)):
        yield from rows
