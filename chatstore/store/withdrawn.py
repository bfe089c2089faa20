"""Messages that their authors deleted themselves, kept forever: ids and who withdrew them. Undo and import skip
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from chatstore.domain.buckets import BucketKey, bucket_of
from chatstore.domain.withdrawals import Withdrawals
from chatstore.store import cassandra

_INSERT = "INSERT INTO withdrawn (channel_id, bucket, message_id, author_id) VALUES (?, ?, ?, ?)"
# Append only: overwriting the set would leave a tombstone and lose a concurrent claim.
_CLAIM = "UPDATE withdrawn SET claimed_by = claimed_by + ? WHERE channel_id = ? AND bucket = ? AND message_id = ?"
_SELECT = "SELECT message_id, author_id, claimed_by FROM withdrawn WHERE channel_id = ? AND bucket = ?"
_SELECT_ONE = f"{_SELECT} AND message_id = ?"


def note_withdrawn(channel_id: int, message_id: int, *, author_id: int) -> None:
    """Record that the author withdraws an existing message, before its row is deleted. Idempotent."""
    cassandra.execute(_INSERT, (channel_id, bucket_of(message_id), message_id, author_id))


def note_claim(channel_id: int, message_id: int, *, actor: int) -> None:
    """Record who claims to withdraw a message that is gone. Idempotent; no effect if the message is withdrawn
    already.
    """
    # Legacy rows name no author and are always honoured; adding a claim would downgrade them.
    if message_id not in read_withdrawal(channel_id, message_id).certain:
        cassandra.execute(_CLAIM, ({actor}, channel_id, bucket_of(message_id), message_id))


def read_withdrawals(channel_id: int, bucket: int) -> Withdrawals:
    """Return the withdrawals of a bucket."""
    return collect(cassandra.execute(_SELECT, (channel_id, bucket)))


def read_withdrawal(channel_id: int, message_id: int) -> Withdrawals:
    """Return the withdrawals recorded for one message."""
    return collect(cassandra.execute(_SELECT_ONE, (channel_id, bucket_of(message_id), message_id)))


def first_withdrawals_in(keys: Sequence[BucketKey]) -> dict[BucketKey, dict[int | None, int]]:
    """Return the lowest id that each author withdrew in some buckets; None: those of legacy rows, which name no author.

    Claims are left out: they are about messages that were gone already.
    """
    answers = cassandra.execute_window((_SELECT, key) for key in keys)
    found: dict[BucketKey, dict[int | None, int]] = {}
    for key, rows in zip(keys, answers, strict=True):
        first = found[key] = {}
        for message_id, author_id, claimed_by in rows:
            if is_certain(author_id, claimed_by):
                # Ids ascend.
                first.setdefault(author_id, message_id)
    return found


def collect(rows: Iterable[tuple[int, int | None, Collection[int] | None]]) -> Withdrawals:
    """Build withdrawals from rows of (message id, author_id, claimed_by)."""
    certain: set[int] = set()
    claims: dict[int, frozenset[int]] = {}
    for message_id, author_id, claimed_by in rows:
        if is_certain(author_id, claimed_by):
            certain.add(message_id)
        else:
            claims[message_id] = frozenset(claimed_by or ())
    return Withdrawals(certain, claims)


def is_certain(author_id: int | None, claimed_by: Collection[int] | None) -> bool:
    """Return whether a row counts by itself: it names the author, or it is a legacy row that names no one."""
    return author_id is not None or not claimed_by
