"""The newest message is found by few statements, also in a channel whose other messages another program deleted."""

from __future__ import annotations

import pytest

from chatstore.domain.buckets import bucket_ids
from chatstore.store import ledger
from chatstore.store.reading.reader import read_newest
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


def test_a_single_message_ends_the_search(channel_id: int) -> None:
    newest = bucket_ids(BUCKETS[-1])[0]
    write_messages(channel_id, [newest])
    with record_statements() as sent:
        found = read_newest(channel_id)
    assert found is not None
    assert found.message_id == newest
    # The bucket of today is read beside the ledger.
    assert len([cql for cql in sent if "FROM messages" in cql]) <= 2


def test_the_search_gives_up_after_a_few_empty_buckets(channel_id: int) -> None:
    write_messages(channel_id, [bucket_ids(BUCKETS[0])[0]])
    with record_statements() as sent:
        assert read_newest(channel_id) is None
    assert len(sent) <= FEW < len(BUCKETS)


def test_a_message_before_a_few_empty_buckets_is_found(channel_id: int) -> None:
    newest = bucket_ids(BUCKETS[-3])[0]
    write_messages(channel_id, [newest])
    found = read_newest(channel_id)
    assert found is not None
    assert found.message_id == newest


def test_rows_without_an_author_are_passed(channel_id: int) -> None:
    first, last = bucket_ids(BUCKETS[-1])
    write_messages(channel_id, [first])
    write_authorless(channel_id, [last])
    found = read_newest(channel_id)
    assert found is not None
    assert found.message_id == first
