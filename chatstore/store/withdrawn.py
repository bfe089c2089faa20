"""What people deleted themselves: ids and whose word it is, kept for ever. Undo and import leave them alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from chatstore.domain.buckets import bucket_of
from chatstore.domain.withdrawals import Withdrawals
from chatstore.store import cassandra

_INSERT = "INSERT INTO withdrawn (channel_id, bucket, message_id, author_id) VALUES (?, ?, ?, ?)"
# Added to, never written whole: that would leave a tombstone, and lose a claim made at the same time.
_CLAIM = "UPDATE withdrawn SET claimed_by = claimed_by + ? WHERE channel_id = ? AND bucket = ? AND message_id = ?"
_SELECT = "SELECT message_id, author_id, claimed_by FROM withdrawn WHERE channel_id = ? AND bucket = ?"
_SELECT_ONE = f"{_SELECT} AND message_id = ?"


def note_withdrawn(channel_id: int, message_id: int, *, author_id: int) -> None:
    """Note that its author withdraws a message that is there, before the row is deleted; twice changes nothing."""
    cassandra.execute(_INSERT, (channel_id, bucket_of(message_id), message_id, author_id))


def note_claim(channel_id: int, message_id: int, *, actor: int) -> None:
    """Note who withdraws a message that is gone; twice changes nothing, nor does it of one that is withdrawn."""
    # A row of old says nothing of anybody, and counts; a claim in it would make a claim of it.
    if message_id not in read_withdrawal(channel_id, message_id).certain:
        cassandra.execute(_CLAIM, ({actor}, channel_id, bucket_of(message_id), message_id))


def read_withdrawals(channel_id: int, bucket: int) -> Withdrawals:
    """What was withdrawn of a bucket."""
    return collect(cassandra.execute(_SELECT, (channel_id, bucket)))


def read_withdrawal(channel_id: int, message_id: int) -> Withdrawals:
    """What was noted of one message."""
    return collect(cassandra.execute(_SELECT_ONE, (channel_id, bucket_of(message_id), message_id)))


def collect(rows: Iterable[tuple[int, int | None, Collection[int] | None]]) -> Withdrawals:
    """From rows of (message id, author_id, claimed_by)."""
    certain: set[int] = set()
    claims: dict[int, frozenset[int]] = {}
    for message_id, author_id, claimed_by in rows:
        if is_certain(author_id, claimed_by):
            certain.add(message_id)
        else:
            claims[message_id] = frozenset(claimed_by or ())
    return Withdrawals(certain, claims)


def is_certain(author_id: int | None, claimed_by: Collection[int] | None) -> bool:
    """Whether a row counts by itself: its author was known, or it is of old and says nothing of anybody."""
    return author_id is not None or not claimed_by
