"""The newest message is found by few statements, also in a channel whose other messages another program deleted."""

from __future__ import annotations

import pytest

from chatstore.domain.buckets import bucket_ids
from chatstore.store import ledger
from chatstore.store.reading.reader import read_newest
from chatstore.store.reading.search import Search
from tests.chatstore.channels import fresh_id, write_authorless, write_messages
from tests.chatstore.recorded_statements import record_statements

BUCKETS = range(300, 360)
"""Buckets that the ledger lists although nothing is left in them."""

FEW = 16


@pytest.fixture
def channel_id() -> int:
    found = fresh_id()
    for bucket in BUCKETS:
        ledger.ensure_row(found, bucket)
    return found


def newest_in(channel_id: int) -> int | None:
    message = read_newest([channel_id]).get(channel_id)
    return None if message is None else message.message_id


def test_a_single_message_ends_the_search(channel_id: int) -> None:
    newest = bucket_ids(BUCKETS[-1])[0]
    write_messages(channel_id, [newest])
    with record_statements() as sent:
        assert newest_in(channel_id) == newest
    assert len([cql for cql in sent if "FROM messages" in cql]) == 1


def test_channels_are_read_together_after_their_ledgers(channel_id: int) -> None:
    channels = [channel_id, *(fresh_id() for _ in range(11))]
    newest = {channel: bucket_ids(BUCKETS[-1])[0] + number for number, channel in enumerate(channels[1:])}
    for channel, message_id in newest.items():
        write_messages(channel, [message_id])
    with record_statements() as sent:
        found = read_newest(channels)
    assert {channel: message.message_id for channel, message in found.items()} == newest
    assert [cql for cql in sent if "FROM bucket_ledger" in cql] == sent[:1]
    assert len(sent) <= 1 + len(newest) + FEW


def test_messages_of_several_channels_are_read_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    channels = [fresh_id() for _ in range(5)]
    for channel in channels:
        write_messages(channel, [bucket_ids(BUCKETS[-1])[0]])
    sent_before: list[int] = []
    finish = Search.finish
    with record_statements() as sent:

        def note_and_finish(search: Search) -> None:
            sent_before.append(len(sent))
            finish(search)

        monkeypatch.setattr(Search, "finish", note_and_finish)
        read_newest(channels)
    assert sent_before[0] == 1 + len(channels)


def test_the_search_gives_up_after_a_few_empty_buckets(channel_id: int) -> None:
    write_messages(channel_id, [bucket_ids(BUCKETS[0])[0]])
    with record_statements() as sent:
        assert newest_in(channel_id) is None
    assert len(sent) <= FEW < len(BUCKETS)


def test_a_message_before_a_few_empty_buckets_is_found(channel_id: int) -> None:
    newest = bucket_ids(BUCKETS[-3])[0]
    write_messages(channel_id, [newest])
    assert newest_in(channel_id) == newest


def test_rows_without_an_author_are_passed(channel_id: int) -> None:
    first, last = bucket_ids(BUCKETS[-1])
    write_messages(channel_id, [first])
    write_authorless(channel_id, [last])
    assert newest_in(channel_id) == first
