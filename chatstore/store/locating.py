"""In which of many channels a message is, or was, by its id alone.

The ledgers are asked first, many at once, so that only channels that were there in the ten
days of the id are asked for the message itself, and for a note that its author withdrew it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from chatstore.domain.buckets import bucket_of
from chatstore.domain.live import Live
from chatstore.store import cassandra, withdrawn

CHANNELS_AT_ONCE = 128
"""Channels between two looks at the clock: some 40 ms, several times that on a busy machine."""

_SELECT_LEDGER = "SELECT live FROM bucket_ledger WHERE channel_id = ? AND bucket = ?"
_SELECT_AUTHOR = "SELECT author_id FROM messages WHERE channel_id = ? AND bucket = ? AND message_id = ?"


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
    jobs = [(_SELECT_LEDGER, (channel_id, bucket_of(message_id))) for channel_id in channel_ids]
    return [
        (channel_id, Live.from_tuple(rows[0][0]).clip(message_id, message_id) is not None)
        for channel_id, rows in zip(channel_ids, cassandra.execute_window(jobs), strict=True)
        if rows
    ]


def _that_know(were_there: Sequence[tuple[int, bool]], message_id: int) -> Iterator[int]:
    """Those that hold the message, then those whose author withdrew it."""
    alive = [channel_id for channel_id, may_live in were_there if may_live]
    yield from _with_rows(_SELECT_AUTHOR, alive, message_id)
    yield from _with_rows(withdrawn.SELECT_ONE, [channel_id for channel_id, _ in were_there], message_id)


def _with_rows(cql: str, channel_ids: Sequence[int], message_id: int) -> Iterator[int]:
    """An authorless row, what an edit left of a removed message, is none."""
    jobs = [(cql, (channel_id, bucket_of(message_id), message_id)) for channel_id in channel_ids]
    for channel_id, rows in zip(channel_ids, cassandra.execute_window(jobs), strict=True):
        if rows and rows[0][0] is not None:
            yield channel_id
