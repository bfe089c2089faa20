"""Fresh channels with content, written with the time of each id as write timestamp."""

import datetime as dt
import itertools
import random
import time
from collections.abc import Iterable

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import first_id_at, ms_of
from chatstore.models import BucketDeletes
from chatstore.operations.coordination.clock import postgres_now
from chatstore.store import cassandra, ledger, messages

VICTOR = 4242
"""A chat author."""

_UPDATE = "UPDATE messages USING TIMESTAMP ? SET content = ? WHERE channel_id = ? AND bucket = ? AND message_id = ?"
_DELETE = "DELETE FROM messages USING TIMESTAMP ? WHERE channel_id = ? AND bucket = ? AND message_id = ?"


def fresh_id() -> int:
    """Return an id that no other test uses."""
    return random.SystemRandom().getrandbits(62)


def delete_old_delete_log() -> None:
    """Remove delete-log entries of earlier tests: they are older than gc_grace and not covered by a repair."""
    BucketDeletes.objects.filter(last_at__lt=postgres_now() - dt.timedelta(days=1)).delete()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def spread_ids(count: int, *, newest_ms: int, step_ms: int = 1000) -> list[int]:
    """Return ids from a time downwards, newest first."""
    return [first_id_at(newest_ms - number * step_ms) for number in range(count)]


def write_messages(channel_id: int, ids: Iterable[int], *, author_id: int = VICTOR) -> list[Message]:
    """Write messages and their ledger rows; return them newest first."""
    wanted = sorted(ids, reverse=True)
    for bucket in {bucket_of(message_id) for message_id in wanted}:
        ledger.ensure_row(channel_id, bucket)
    written = [Message(channel_id, message_id, author_id, f"message {message_id}") for message_id in wanted]
    messages.insert_messages(written, stamp_us=messages.posted_stamp)
    return written


def write_authorless(channel_id: int, ids: Iterable[int]) -> None:
    """Write rows without an author, as left by an edit that raced a delete."""
    for message_id in ids:
        bucket = bucket_of(message_id)
        ledger.ensure_row(channel_id, bucket)
        key = (channel_id, bucket, message_id)
        cassandra.execute(_UPDATE, (ms_of(message_id) * 1000, "edited", *key))


def delete_rows(channel_id: int, ids: Iterable[int]) -> None:
    """Delete each id by row, as other programs do: one tombstone each."""
    for bucket, group in itertools.groupby(sorted(ids), key=bucket_of):
        rows = ((now_ms() * 1000, channel_id, bucket, message_id) for message_id in group)
        chunks = iter(lambda rows=rows: list(itertools.islice(rows, 100)), [])  # type: ignore[misc]
        cassandra.execute_batches(_DELETE, chunks)


def ids_of(page_messages: Iterable[Message]) -> list[int]:
    return [message.message_id for message in page_messages]
