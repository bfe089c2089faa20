"""Search for a message by its id alone, over many channels.

The ledgers are read first, many at once, so that only channels with a bucket for the id's ten days are queried for the
message itself, and for a record that its author withdrew it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from chatstore.domain.buckets import bucket_of
from chatstore.domain.live import Live
from chatstore.store import cassandra
from chatstore.store.withdrawn import is_certain

CHANNELS_PER_CHECK = 256
"""Channels between two checks of the deadline: some 100 ms on two busy cores."""

KEYS_PER_STATEMENT = 32
"""Partitions per statement: more than three times the channels per second of single-key statements (2,560 channels, two
nodes), and few enough for a coordinator to scatter.
"""

_SELECT_LEDGER = "SELECT channel_id, live FROM bucket_ledger WHERE channel_id IN ? AND bucket = ?"
_SELECT_AUTHOR = "SELECT channel_id, author_id FROM messages WHERE channel_id IN ? AND bucket = ? AND message_id = ?"
_SELECT_WITHDRAWN = (
    "SELECT channel_id, author_id, claimed_by FROM withdrawn WHERE channel_id IN ? AND bucket = ? AND message_id = ?"
)


@dataclass(frozen=True, slots=True)
class Located:
    """The channel of a message, or None. channels_searched: number of channels with a bucket for its ten days that were
    searched. is_whole: whether all given channels were searched before the deadline.
    """

    channel_id: int | None
    channels_searched: int
    is_whole: bool


def locate_message(channel_ids: Iterable[int], message_id: int, *, deadline_seconds: float) -> Located:
    """Return the first of the channels that contains the message, or in which its author withdrew it.

    Pass the likeliest channels first: a match ends the search, and so does the deadline, but not before the first
    `CHANNELS_PER_CHECK` were searched. Raises `StoreUnavailable`.
    """
    end = time.monotonic() + deadline_seconds
    remaining = iter(channel_ids)
    channels_searched = 0
    while chunk := list(islice(remaining, CHANNELS_PER_CHECK)):
        candidates = _channels_with_bucket(chunk, message_id)
        channels_searched += len(candidates)
        for channel_id in _channels_with_message(candidates, message_id):
            return Located(channel_id, channels_searched, is_whole=True)
        if time.monotonic() > end:
            return Located(None, channels_searched, is_whole=next(remaining, None) is None)
    return Located(None, channels_searched, is_whole=True)


def _channels_with_bucket(channel_ids: Sequence[int], message_id: int) -> list[tuple[int, bool]]:
    """Return the channels with a ledger row for the id's bucket, each with whether the id may be live there."""
    rows = _select(_SELECT_LEDGER, channel_ids, bucket_of(message_id))
    return [
        (channel_id, Live.from_tuple(*rows[channel_id]).clip(message_id, message_id) is not None)
        for channel_id in channel_ids
        if channel_id in rows
    ]


def _channels_with_message(candidates: Sequence[tuple[int, bool]], message_id: int) -> Iterator[int]:
    """Yield the channels that contain the message, then those whose author withdrew it, each in the given order."""
    alive = [channel_id for channel_id, may_live in candidates if may_live]
    authors = _select(_SELECT_AUTHOR, alive, bucket_of(message_id), message_id)
    # A row without an author, left by an edit of a deleted message, does not count.
    yield from (channel_id for channel_id in alive if authors.get(channel_id, (None,)) != (None,))
    every = [channel_id for channel_id, _ in candidates]
    noted = _select(_SELECT_WITHDRAWN, every, bucket_of(message_id), message_id)
    # A mere claim proves nothing: any user can claim any id in any channel.
    yield from (channel_id for channel_id in every if channel_id in noted and is_certain(*noted[channel_id]))


def _select(cql: str, channel_ids: Sequence[int], *values: int) -> dict[int, tuple[Any, ...]]:
    """Return the columns that the statement selects beside the channel, by channel."""
    parts = (channel_ids[n : n + KEYS_PER_STATEMENT] for n in range(0, len(channel_ids), KEYS_PER_STATEMENT))
    answers = cassandra.execute_window((cql, (part, *values)) for part in parts)
    return {channel_id: tuple(columns) for rows in answers for channel_id, *columns in rows}
