"""In which of many channels a message is, or was, by its id alone.

The ledgers are asked first, many at once, so that only channels that were there in the ten
days of the id are asked for the message itself, and for a note that its author withdrew it.
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

CHANNELS_AT_ONCE = 256
"""Channels between two looks at the clock: some 100 ms on two busy cores."""

KEYS_A_STATEMENT = 32
"""Partitions that one statement asks: over three times the channels a second of a statement each
(2,560 channels, two nodes), and few enough for a coordinator to scatter."""

_SELECT_LEDGER = "SELECT channel_id, live FROM bucket_ledger WHERE channel_id IN ? AND bucket = ?"
_SELECT_AUTHOR = "SELECT channel_id, author_id FROM messages WHERE channel_id IN ? AND bucket = ? AND message_id = ?"
_SELECT_WITHDRAWN = (
    "SELECT channel_id, author_id, claimed_by FROM withdrawn WHERE channel_id IN ? AND bucket = ? AND message_id = ?"
)


@dataclass(frozen=True, slots=True)
class Located:
    """Where a message is, or None. there_then: channels that held anything in its ten days and
    were asked. is_whole: whether every channel given was looked at before the deadline."""

    channel_id: int | None
    there_then: int
    is_whole: bool


def locate_message(channel_ids: Iterable[int], message_id: int, *, deadline_seconds: float) -> Located:
    """The first of the channels in which the message lives, or was withdrawn by its author.

    Put the likeliest first: what is found ends the search, and so does the deadline, though
    never before the first `CHANNELS_AT_ONCE` were asked. Raises `StoreUnavailable`.
    """
    end = time.monotonic() + deadline_seconds
    remaining = iter(channel_ids)
    there_then = 0
    while chunk := list(islice(remaining, CHANNELS_AT_ONCE)):
        were_there = _were_there(chunk, message_id)
        there_then += len(were_there)
        for channel_id in _that_know(were_there, message_id):
            return Located(channel_id, there_then, is_whole=True)
        if time.monotonic() > end:
            return Located(None, there_then, is_whole=next(remaining, None) is None)
    return Located(None, there_then, is_whole=True)


def _were_there(channel_ids: Sequence[int], message_id: int) -> list[tuple[int, bool]]:
    """Those with a ledger row for the id's bucket, each with whether the id may live there."""
    rows = _ask(_SELECT_LEDGER, channel_ids, bucket_of(message_id))
    return [
        (channel_id, Live.from_tuple(*rows[channel_id]).clip(message_id, message_id) is not None)
        for channel_id in channel_ids
        if channel_id in rows
    ]


def _that_know(were_there: Sequence[tuple[int, bool]], message_id: int) -> Iterator[int]:
    """Those that hold the message, then those whose author withdrew it, each in the order given."""
    alive = [channel_id for channel_id, may_live in were_there if may_live]
    authors = _ask(_SELECT_AUTHOR, alive, bucket_of(message_id), message_id)
    # A row without an author, what an edit left of a removed message, is none.
    yield from (channel_id for channel_id in alive if authors.get(channel_id, (None,)) != (None,))
    every = [channel_id for channel_id, _ in were_there]
    noted = _ask(_SELECT_WITHDRAWN, every, bucket_of(message_id), message_id)
    # That somebody claims it there says nothing: anybody may, of any id in any channel.
    yield from (channel_id for channel_id in every if channel_id in noted and is_certain(*noted[channel_id]))


def _ask(cql: str, channel_ids: Sequence[int], *values: int) -> dict[int, tuple[Any, ...]]:
    """What the statement selects beside the channel, by channel."""
    parts = (channel_ids[n : n + KEYS_A_STATEMENT] for n in range(0, len(channel_ids), KEYS_A_STATEMENT))
    answers = cassandra.execute_window((cql, (part, *values)) for part in parts)
    return {row[0]: row[1:] for rows in answers for row in rows}
