"""Messages are read as they were written, and no write leaves a tombstone."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.buckets import bucket_ids, bucket_of
from chatstore.domain.messages import VALUE_COLUMNS, Message
from chatstore.domain.milliseconds import DAY_MS
from chatstore.domain.snowflakes import MAX_ID, MIN_ID
from chatstore.store import cassandra, messages, traces
from tests.chatstore.channels import (
    VICTOR,
    fresh_id,
    ids_of,
    now_ms,
    spread_ids,
    write_messages,
)
from tests.examples import on_servers

IDS = st.integers(MIN_ID, MAX_ID)
# Cassandra stores times with millisecond precision.
TIMES = st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2100, 1, 1)).map(  # noqa: DTZ001
    lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000, tzinfo=dt.UTC)
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)
NUMBERS = st.integers(0, 2**31 - 1)


def any_message(channel_id: int) -> st.SearchStrategy[Message]:
    return st.builds(
        Message,
        channel_id=st.just(channel_id),
        message_id=IDS,
        author_id=IDS,
        content=TEXTS,
        type=NUMBERS,
        edited_at=st.none() | TIMES,
        flags=NUMBERS,
        pinned=st.booleans(),
        webhook_id=st.none() | st.integers(1, MAX_ID),
        author_name=st.none() | TEXTS.filter(bool),
        attachments=st.lists(TEXTS, max_size=3),
        embeds=st.lists(TEXTS, max_size=3),
        stickers=st.lists(TEXTS, max_size=3),
        reactions=st.dictionaries(TEXTS, NUMBERS, max_size=3),
        mentions=st.lists(IDS, max_size=3),
        reference=st.none() | st.tuples(IDS, st.none() | IDS),
    )


def as_plain(message: Message) -> dict[str, object]:
    """Return the columns as plain values: an empty list equals an empty tuple."""
    plain = {name: getattr(message, name) for name in ("channel_id", "message_id", *VALUE_COLUMNS)}
    for name in ("attachments", "embeds", "stickers", "mentions"):
        plain[name] = list(plain[name])
    plain["reactions"] = dict(message.reactions)
    return plain


@on_servers
@given(data=st.data())
def test_a_message_is_read_as_it_was_written(data: st.DataObject) -> None:
    channel_id = fresh_id()
    message = data.draw(any_message(channel_id))
    messages.insert_message(message, stamp_us=1)
    found = messages.read_message(channel_id, message.message_id)
    assert found is not None
    assert as_plain(found) == as_plain(message)


@on_servers
@given(data=st.data())
def test_messages_written_in_batches_are_read_as_written(data: st.DataObject) -> None:
    channel_id = fresh_id()
    drawn = data.draw(st.lists(any_message(channel_id), max_size=8, unique_by=lambda message: message.message_id))
    assert messages.insert_messages(drawn, stamp_us=1) == len(drawn)
    found = []
    for bucket in {message.bucket for message in drawn}:
        for rows in messages.iterate_rows(channel_id, bucket):
            found += [messages.to_message(channel_id, row) for row in rows]
    by_id = {message.message_id: as_plain(message) for message in drawn}
    assert {message.message_id: as_plain(message) for message in found} == by_id


def test_only_columns_that_are_set_are_bound() -> None:
    message = Message(1, 2, 3)
    assert messages.to_values(message) == {"author_id": 3, "type": 0, "content": ""}
    edited = Message(1, 2, 3, "x", pinned=True, mentions=(4,), edited_at=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    assert sorted(messages.to_values(edited)) == [
        "author_id",
        "content",
        "edited_at",
        "mentions",
        "pinned",
        "type",
    ]


def test_writes_leave_no_tombstones() -> None:
    channel_id = fresh_id()
    base = bucket_ids(250)[0]
    plain = [Message(channel_id, base + number, VICTOR, "plain") for number in range(150)]
    rich = [
        Message(channel_id, base + 1000 + number, VICTOR, "rich", embeds=["{}"], reactions={"👍": 2})
        for number in range(150)
    ]
    messages.insert_messages([*plain, *rich], stamp_us=1)
    messages.insert_message(Message(channel_id, base + 5000, VICTOR, "one", flags=4), stamp_us=1)
    messages.update_columns(channel_id, base, {"content": "edited"}, stamp_us=2)
    traced = traces.execute_traced(
        "SELECT message_id FROM messages WHERE channel_id = ? AND bucket = ?",
        (channel_id, 250),
        consistency=cassandra.ALL,
    )
    assert len(traced.rows) == traced.live == 301
    assert traced.tombstones == 0


def test_each_message_has_its_own_timestamp() -> None:
    channel_id = fresh_id()
    ids = spread_ids(2, newest_ms=now_ms() - 90 * DAY_MS)
    write_messages(channel_id, ids)
    for message_id in ids:
        message = Message(channel_id, message_id, VICTOR)
        assert messages.newest_writetime(channel_id, message_id) == messages.posted_stamp(message)


def test_the_newest_writetime_is_that_of_the_newest_cell() -> None:
    channel_id, message_id = fresh_id(), 5
    messages.insert_message(Message(channel_id, message_id, VICTOR, "one"), stamp_us=100)
    messages.update_columns(channel_id, message_id, {"pinned": True}, stamp_us=300)
    messages.update_columns(channel_id, message_id, {"content": "two"}, stamp_us=200)
    assert messages.newest_writetime(channel_id, message_id) == 300
    assert messages.newest_writetime(channel_id, 6) is None


def test_a_delete_keeps_later_writes() -> None:
    channel_id, message_id = fresh_id(), 5
    messages.insert_message(Message(channel_id, message_id, VICTOR, "one"), stamp_us=100)
    messages.delete_row(channel_id, message_id, stamp_us=99)
    assert messages.read_message(channel_id, message_id) is not None
    messages.delete_row(channel_id, message_id, stamp_us=100)
    assert messages.read_message(channel_id, message_id) is None


def test_an_edit_that_raced_a_delete_leaves_a_row_without_an_author() -> None:
    channel_id, message_id = fresh_id(), 5
    messages.insert_message(Message(channel_id, message_id, VICTOR, "one"), stamp_us=100)
    messages.delete_row(channel_id, message_id, stamp_us=150)
    messages.update_columns(channel_id, message_id, {"content": "two"}, stamp_us=200)
    assert messages.read_message(channel_id, message_id) is None
    assert list(messages.read_ids(channel_id, bucket_of(message_id))) == [[(message_id, None)]]


@on_servers
@given(
    offsets=st.sets(st.integers(0, 60), max_size=30),
    bounds=st.tuples(st.integers(-5, 65), st.integers(-5, 65)),
    fetch_size=st.integers(1, 10),
    ascending=st.booleans(),
)
def test_a_scan_between_bounds_returns_exactly_those_in_either_order(
    offsets: set[int], bounds: tuple[int, int], fetch_size: int, *, ascending: bool
) -> None:
    channel_id = fresh_id()
    low, high = sorted(bounds)
    base = bucket_ids(17)[0] + 100
    write_messages(channel_id, [base + offset for offset in offsets])
    pages = messages.iterate_rows(
        channel_id,
        17,
        first=base + low,
        last=base + high,
        columns=("message_id",),
        fetch_size=fetch_size,
        ascending=ascending,
    )
    found = [message_id for rows in pages for (message_id,) in rows]
    assert found == [base + offset for offset in sorted(offsets, reverse=not ascending) if low <= offset <= high]


def test_a_scan_stays_within_its_bucket() -> None:
    channel_id = fresh_id()
    first, last = bucket_ids(17)
    write_messages(channel_id, [first - 1, first, last, last + 1])
    pages = messages.read_ids(channel_id, 17, first=first - 10, last=last + 10)
    assert [row for rows in pages for row in rows] == [(last, VICTOR), (first, VICTOR)]


@pytest.mark.parametrize("count", [1, 99, 100, 101, 350])
def test_batches_of_any_size_are_counted(count: int) -> None:
    channel_id = fresh_id()
    written = write_messages(channel_id, spread_ids(count, newest_ms=now_ms() - 50 * DAY_MS, step_ms=7))
    paced: list[int] = []
    assert messages.insert_messages(written, stamp_us=1, pace=paced.append) == count
    assert sum(paced) == count
    assert max(paced) <= messages.BATCH_ROWS
    found = [row[0] for rows in messages.read_ids(channel_id, written[0].bucket) for row in rows]
    assert found == ids_of(message for message in written if message.bucket == written[0].bucket)
