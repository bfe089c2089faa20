"""The table `messages`: conversion of rows, writes with a given stamp, reads by key or by scan.

Only columns that are set are bound: a bound None would be a tombstone. Nothing here uses the ledger; callers maintain
it before they write (`operations.messages`).
"""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from chatstore.domain.buckets import bucket_ids, bucket_of
from chatstore.domain.errors import TooManyTombstones
from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID, VALUE_COLUMNS, Message
from chatstore.domain.snowflakes import ms_of
from chatstore.store import cassandra
from chatstore.store.cassandra import UNSET

COLUMNS = ("message_id", *VALUE_COLUMNS)
"""Columns of a full-row read, in this order."""

BATCH_ROWS = 100
"""Rows per batch of one partition: 50–100 are fastest, 100 KB is fine."""

SCAN_FETCH = 50_000
"""Rows per page of a scan of ids alone: most buckets are one page, and each traced page costs the servers 0.1 s of CPU
(measured: 0.68 s for 33,000 rows in two traced pages, 0.48 s untraced).
"""

ROW_FETCH = 10_000
"""Rows per page of a scan of full rows: 20 MB at 4,000 characters each."""

StampOf = int | Callable[[Message], int]

_INSERT_USUAL = (
    "INSERT INTO messages (channel_id, bucket, message_id, author_id, type, content) "
    "VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
)
_INSERT_FULL = (
    f"INSERT INTO messages (channel_id, bucket, {', '.join(COLUMNS)}) "
    f"VALUES ({', '.join('?' * (len(COLUMNS) + 2))}) USING TIMESTAMP ?"
)
_KEY = "channel_id = ? AND bucket = ? AND message_id = ?"
_BETWEEN = "channel_id = ? AND bucket = ? AND message_id >= ? AND message_id <= ?"
_SELECT_ROW = f"SELECT {', '.join(COLUMNS)} FROM messages WHERE {_KEY}"
_SELECT_WRITETIMES = (
    f"SELECT {', '.join(f'WRITETIME({column})' for column in VALUE_COLUMNS)} FROM messages WHERE {_KEY}"
)
_DELETE_ROW = f"DELETE FROM messages USING TIMESTAMP ? WHERE {_KEY}"


def posted_stamp(message: Message) -> int:
    """Return the stamp (µs) of a message written at the time that its id carries."""
    return ms_of(message.message_id) * 1000


# --- Rows and values --------------------------------------------------------------------


def to_message(channel_id: int, row: Sequence[Any]) -> Message:
    """Convert a row in the order of `COLUMNS`, which more may follow. The row must have an author."""
    message_id, author_id, kind, content, edited_at, flags, pinned, webhook_id, author_name, *objects = row
    attachments, embeds, stickers, reactions, mentions, reference, *_ = objects
    return Message(
        channel_id,
        message_id,
        author_id,
        content or "",
        kind or 0,
        edited_at.replace(tzinfo=dt.UTC) if edited_at is not None else None,
        flags or 0,
        pinned or False,
        webhook_id,
        author_name,
        attachments or (),
        embeds or (),
        stickers or (),
        dict(reactions) if reactions else {},
        mentions or (),
        (reference[0], reference[1]) if reference else None,
    )


def to_values(message: Message) -> dict[str, Any]:
    """Return the columns that are set, by name; author, type and content always are."""
    values: dict[str, Any] = {
        "author_id": message.author_id,
        "type": message.type,
        "content": message.content,
    }
    optional = {column: getattr(message, column) for column in VALUE_COLUMNS[3:]}
    return values | {column: value for column, value in optional.items() if value}


def _is_usual(message: Message) -> bool:
    return not (
        message.edited_at
        or message.flags
        or message.pinned
        or message.webhook_id
        or message.author_name
        or message.attachments
        or message.embeds
        or message.stickers
        or message.reactions
        or message.mentions
        or message.reference
    )


def _insert_of(message: Message, bucket: int, stamp_us: int) -> tuple[str, tuple[Any, ...]]:
    """Return the statement and its values: the short statement if only the usual columns are set."""
    key = (message.channel_id, bucket, message.message_id)
    if _is_usual(message):
        return _INSERT_USUAL, (*key, message.author_id, message.type, message.content, stamp_us)
    values = to_values(message)
    return _INSERT_FULL, (*key, *(values.get(column, UNSET) for column in VALUE_COLUMNS), stamp_us)


# --- Writing ----------------------------------------------------------------------------


def insert_message(message: Message, *, stamp_us: int, timeout: float | None = None) -> None:
    """Write one message with its stamp (µs)."""
    cql, params = _insert_of(message, message.bucket, stamp_us)
    cassandra.execute(cql, params, timeout=timeout)


def insert_messages(
    messages: Iterable[Message],
    *,
    stamp_us: StampOf,
    pace: Callable[[int], None] | None = None,
) -> int:
    """Write messages in batches of one partition; return their number.

    Messages of one bucket should be adjacent. `stamp_us`: one stamp for all, or a function of the message
    (`posted_stamp` back-dates each to its own time).
    """
    return cassandra.execute_batch_jobs(insert_jobs(messages, stamp_us=stamp_us), pace=pace)


def insert_jobs(messages: Iterable[Message], *, stamp_us: StampOf) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Yield the batches of `insert_messages`, statement and rows, for callers that send them in another way."""
    stamp_of = stamp_us if callable(stamp_us) else None
    fixed = 0 if callable(stamp_us) else stamp_us
    for (_, bucket), group in itertools.groupby(messages, key=lambda m: (m.channel_id, m.bucket)):
        while chunk := list(itertools.islice(group, BATCH_ROWS)):
            by_cql: dict[str, list[tuple[Any, ...]]] = {}
            for message in chunk:
                cql, params = _insert_of(message, bucket, stamp_of(message) if stamp_of else fixed)
                by_cql.setdefault(cql, []).append(params)
            yield from by_cql.items()


def update_columns(
    channel_id: int, message_id: int, values: dict[str, Any], *, stamp_us: int, timeout: float | None = None
) -> None:
    """Write some columns of a message; a row that is gone comes back without an author."""
    cql, params = update_job(channel_id, message_id, values, stamp_us=stamp_us)
    cassandra.execute(cql, params, timeout=timeout)


def update_job(
    channel_id: int, message_id: int, values: dict[str, Any], *, stamp_us: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement of `update_columns` and its values, for callers that send many of them."""
    columns = sorted(values)
    cql = f"UPDATE messages USING TIMESTAMP ? SET {', '.join(f'{c} = ?' for c in columns)} WHERE {_KEY}"
    key = (channel_id, bucket_of(message_id), message_id)
    return cql, (stamp_us, *(values[c] for c in columns), *key)


def delete_row(channel_id: int, message_id: int, *, stamp_us: int, timeout: float | None = None) -> None:
    """Delete one row at a stamp (µs); cells written later are kept."""
    key = (channel_id, bucket_of(message_id), message_id)
    cassandra.execute(_DELETE_ROW, (stamp_us, *key), timeout=timeout)


# --- Reading ----------------------------------------------------------------------------


def read_message(channel_id: int, message_id: int) -> Message | None:
    """Return one message; None if it is gone or has no author (an edit that raced a delete)."""
    return read_messages(channel_id, [message_id]).get(message_id)


def read_messages(channel_id: int, message_ids: Iterable[int]) -> dict[int, Message]:
    """Return those of some messages of a channel that are there, by id, with several reads in flight."""
    jobs = ((_SELECT_ROW, (channel_id, bucket_of(message_id), message_id)) for message_id in message_ids)
    rows = itertools.chain.from_iterable(cassandra.execute_window(jobs))
    return {row[MESSAGE_ID]: to_message(channel_id, row) for row in rows if row[AUTHOR_ID] is not None}


def newest_writetime(channel_id: int, message_id: int) -> int | None:
    """Return the newest WRITETIME (µs) among a row's cells; None if there is no row."""
    rows = cassandra.execute(_SELECT_WRITETIMES, (channel_id, bucket_of(message_id), message_id))
    return max((stamp for row in rows for stamp in row if stamp is not None), default=None)


def read_ids(
    channel_id: int, bucket: int, *, first: int | None = None, last: int | None = None
) -> Iterator[list[tuple[int, int | None]]]:
    """Yield (message id, author id or None) of a bucket's rows, newest first, page by page.

    At quorum. `first`, `last`: inclusive bounds, by default the whole bucket. A read that fails on tombstones is
    retried in halves of its interval.
    """
    return iterate_rows(
        channel_id,
        bucket,
        first=first,
        last=last,
        columns=("message_id", "author_id"),
        fetch_size=SCAN_FETCH,
    )


def iterate_rows(
    channel_id: int,
    bucket: int,
    *,
    first: int | None = None,
    last: int | None = None,
    columns: Sequence[str] = COLUMNS,
    fetch_size: int = ROW_FETCH,
    traces: list[uuid.UUID] | None = None,
    ascending: bool = False,
) -> Iterator[list[Any]]:
    """Yield a bucket's rows, newest or oldest first, page by page; `columns[0]` must be the message id.

    `columns` may be expressions such as `WRITETIME(content)`. Bounds, quorum and halves as in `read_ids`; `traces` as
    in `cassandra.iterate`. The first page is requested at once, so that a caller can have several reads in flight.
    Raises `TooManyTombstones` only if a single id can't be read.
    """
    low, high = bucket_ids(bucket)
    low, high = low if first is None else max(low, first), high if last is None else min(high, last)
    order = " ORDER BY message_id ASC" if ascending else ""
    cql = f"SELECT {', '.join(columns)} FROM messages WHERE {_BETWEEN}{order}"

    def submit(low: int, high: int) -> cassandra.Pending:
        return cassandra.submit(cql, (channel_id, bucket, low, high), fetch_size=fetch_size, traces=traces)

    first_page = submit(low, high) if low <= high else None
    return _iterate_intervals(submit, low, high, first_page, ascending=ascending)


def _iterate_intervals(
    submit: Callable[[int, int], cassandra.Pending],
    low: int,
    high: int,
    pending: cassandra.Pending | None,
    *,
    ascending: bool,
) -> Iterator[list[Any]]:
    """Yield the pages of the interval whose read is pending; if it fails on tombstones, those of its halves."""
    intervals = [(low, high)]
    while intervals:
        low, high = intervals.pop()
        if low > high:
            continue
        try:
            reading, pending = pending or submit(low, high), None
            for rows in reading.pages():
                if rows:
                    yield rows
                    if ascending:
                        low = rows[-1][0] + 1
                    else:
                        high = rows[-1][0] - 1
        except TooManyTombstones:
            if low >= high:
                raise
            middle = low + (high - low) // 2
            halves = [(low, middle), (middle + 1, high)]
            intervals += reversed(halves) if ascending else halves
