"""What people deleted themselves: ids only, kept for ever. Undo and import leave them alone."""

from __future__ import annotations

from chatstore.domain.buckets import bucket_of
from chatstore.store import cassandra

_INSERT = "INSERT INTO withdrawn (channel_id, bucket, message_id) VALUES (?, ?, ?)"
_SELECT = "SELECT message_id FROM withdrawn WHERE channel_id = ? AND bucket = ?"
_SELECT_ONE = f"{_SELECT} AND message_id = ?"


def note_withdrawn(channel_id: int, message_id: int, *, timeout: float | None = None) -> None:
    """Note it before the row is deleted; noting twice changes nothing."""
    cassandra.execute(_INSERT, (channel_id, bucket_of(message_id), message_id), timeout=timeout)


def withdrawn_ids(channel_id: int, bucket: int) -> set[int]:
    """The ids of a bucket that their authors withdrew."""
    return {row[0] for row in cassandra.execute(_SELECT, (channel_id, bucket))}


def is_withdrawn(channel_id: int, message_id: int) -> bool:
    """Whether its author withdrew the message."""
    return bool(cassandra.execute(_SELECT_ONE, (channel_id, bucket_of(message_id), message_id)))
