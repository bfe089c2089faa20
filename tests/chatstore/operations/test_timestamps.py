"""Write timestamps: unique, ascending, based on Postgres's time, and in transaction order."""

import threading
import time

import pytest
from django.db import connection, transaction

from chatstore.domain.errors import WriteRefused
from chatstore.models import BucketStamp
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.coordination.timestamps import issue_stamp
from tests.chatstore.channels import fresh_id


def test_a_timestamp_is_the_time_of_postgres() -> None:
    before = postgres_now_us()
    stamp = issue_stamp(fresh_id(), 7)
    assert before <= stamp <= postgres_now_us()


def test_each_timestamp_is_later_than_the_last_even_if_the_clock_went_back() -> None:
    channel_id = fresh_id()
    issue_stamp(channel_id, 7)
    ahead = postgres_now_us() + 4_000_000
    BucketStamp.objects.filter(channel_id=channel_id, bucket=7).update(stamp=ahead)
    assert issue_stamp(channel_id, 7) == ahead + 1
    assert issue_stamp(channel_id, 7) == ahead + 2
    # Each bucket has its own sequence of timestamps.
    assert issue_stamp(channel_id, 8) < ahead


def test_no_timestamp_is_issued_after_one_too_far_ahead() -> None:
    channel_id = fresh_id()
    issue_stamp(channel_id, 7)
    ahead = postgres_now_us() + 60_000_000
    BucketStamp.objects.filter(channel_id=channel_id, bucket=7).update(stamp=ahead)
    with pytest.raises(WriteRefused):
        issue_stamp(channel_id, 7)
    assert BucketStamp.objects.get(channel_id=channel_id, bucket=7).stamp == ahead


def issue_many(channel_id: int, count: int, into: list[int]) -> None:
    into += [issue_stamp(channel_id, 7) for _ in range(count)]
    connection.close()


def test_no_two_jobs_get_the_same_timestamp() -> None:
    channel_id = fresh_id()
    issued: list[list[int]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=issue_many, args=(channel_id, 50, into)) for into in issued]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = [stamp for into in issued for stamp in into]
    assert len(set(together)) == 200
    assert all(into == sorted(into) for into in issued)


def test_a_timestamp_waits_for_the_transaction_that_issued_the_last_one() -> None:
    channel_id = fresh_id()
    other: list[int] = []
    with transaction.atomic():
        mine = issue_stamp(channel_id, 7)
        thread = threading.Thread(target=issue_many, args=(channel_id, 1, other))
        thread.start()
        time.sleep(0.2)
        assert other == []
        committing = postgres_now_us()
    thread.join()
    assert other[0] > committing > mine


def test_a_timestamp_of_a_rolled_back_transaction_is_released() -> None:
    channel_id = fresh_id()
    with transaction.atomic():
        first = issue_stamp(channel_id, 7)
        transaction.set_rollback(True)
    assert issue_stamp(channel_id, 7) > first
