"""Deletes per bucket are logged by the hour, read once, and removed when a repair covers them."""

import datetime as dt
import threading

import pytest
from django.db import connection

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import Forbidden
from chatstore.domain.milliseconds import DAY_MS
from chatstore.domain.snowflakes import first_id_at
from chatstore.models import BucketDeletes
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.gateway.messages import post_message, withdraw_message
from chatstore.operations.ledger.delete_log import (
    MAX_SEND_DELAY_SECONDS,
    due_buckets,
    mark_reconciled,
    note_deletes,
    prune_deletes,
)
from tests.chatstore.channels import VICTOR, fresh_id, now_ms, write_messages


def counted(channel_id: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for bucket, deletes in BucketDeletes.objects.filter(channel_id=channel_id).values_list("bucket", "deletes"):
        found[bucket] = found.get(bucket, 0) + deletes
    return found


def test_deletes_are_logged_even_for_rows_that_were_just_gone() -> None:
    channel_id = fresh_id()
    message = post_message(channel_id, author_id=VICTOR, content="hello")
    assert counted(channel_id) == {}
    assert withdraw_message(channel_id, message.message_id, actor=VICTOR)
    assert not withdraw_message(channel_id, message.message_id, actor=VICTOR)
    assert counted(channel_id) == {message.bucket: 2}


def test_refused_deletes_are_not_logged() -> None:
    channel_id = fresh_id()
    message = post_message(channel_id, author_id=VICTOR, content="hello")
    with pytest.raises(Forbidden):
        withdraw_message(channel_id, message.message_id, actor=VICTOR + 1)
    assert counted(channel_id) == {}


def test_deletes_from_several_processes_add_up() -> None:
    channel_id = fresh_id()

    def note() -> None:
        try:
            for _ in range(10):
                note_deletes(channel_id, -3, 2)
        finally:
            connection.close()

    threads = [threading.Thread(target=note) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    note_deletes(channel_id, -3, 0)
    note_deletes(channel_id, 300, 1)
    assert counted(channel_id) == {-3: 80, 300: 1}


def test_a_bucket_is_due_from_its_last_delete_until_it_is_read() -> None:
    channel_id = fresh_id()
    long_ago = postgres_now() - dt.timedelta(hours=3)
    note_deletes(channel_id, 7, 5, sent_by=long_ago)
    note_deletes(channel_id, 8, 5, sent_by=long_ago - dt.timedelta(hours=1))
    note_deletes(channel_id, 9, 5)
    assert [bucket for _, bucket, _ in due_buckets(channel_id=channel_id, limit=9)] == [8, 7]
    assert [bucket for _, bucket, _ in due_buckets(channel_id=channel_id, limit=9, before=8)] == [7]
    assert [bucket for _, bucket, _ in due_buckets(channel_id=channel_id, limit=9, since=8)] == [8]
    mark_reconciled(channel_id, 8, began_at=postgres_now())
    mark_reconciled(channel_id, 7, began_at=long_ago - dt.timedelta(seconds=1))
    assert [bucket for _, bucket, _ in due_buckets(channel_id=channel_id, limit=9)] == [7]
    note_deletes(channel_id, 8, 1, sent_by=postgres_now())
    assert [bucket for _, bucket, _ in due_buckets(channel_id=channel_id, limit=9)] == [7, 8]


def test_a_read_does_not_cover_a_delete_still_in_flight() -> None:
    channel_id = fresh_id()
    note_deletes(channel_id, 7, 1)
    mark_reconciled(channel_id, 7, began_at=postgres_now())
    row = BucketDeletes.objects.get(channel_id=channel_id)
    assert not row.is_reconciled
    assert row.last_at > postgres_now() + dt.timedelta(seconds=MAX_SEND_DELAY_SECONDS - 10)


def test_entries_that_are_read_and_repaired_are_removed() -> None:
    channel_id = fresh_id()
    # Long before anything that other tests log.
    began_at = postgres_now() - dt.timedelta(days=3_000)
    # What an earlier run on the same servers left after its own repair.
    prune_deletes(began_at)
    for bucket, before in ((7, 60), (8, 60), (9, -60)):
        note_deletes(channel_id, bucket, 1, sent_by=began_at - dt.timedelta(seconds=before))
    for bucket in (7, 9):
        mark_reconciled(channel_id, bucket, began_at=postgres_now())
    assert prune_deletes(began_at) == 1
    assert counted(channel_id) == {8: 1, 9: 1}


def test_a_delete_of_an_old_message_is_logged_in_its_own_bucket() -> None:
    channel_id = fresh_id()
    old = first_id_at(now_ms() - 400 * DAY_MS)
    write_messages(channel_id, [old])
    withdraw_message(channel_id, old, actor=VICTOR)
    assert counted(channel_id) == {bucket_of(old): 1}
