"""Counts of buckets come from the ledger; figures are read only of buckets that it cannot count."""

from __future__ import annotations

import datetime as dt

from chatstore.domain.buckets import bucket_ids
from chatstore.domain.live import Live
from chatstore.operations.coordination.clock import postgres_now, postgres_now_us
from chatstore.operations.gateway.timeline import BucketCount, count_buckets, count_buckets_in
from chatstore.store import figures, ledger
from chatstore.store.reading.reader import read_around
from tests.chatstore.channels import fresh_id, write_messages
from tests.chatstore.recorded_statements import record_statements


def set_count(channel_id: int, bucket: int, count: int) -> None:
    live = Live(*bucket_ids(bucket), count)
    ledger.set_live(channel_id, bucket, live, read_began_us=postgres_now_us() + 11_000_000)


def measure(channel_id: int, bucket: int, count: int) -> dt.datetime:
    at = postgres_now().replace(microsecond=0)
    figures.note_figures(channel_id, bucket, {"live_rows": count}, source="own read", measured_at=at)
    return at


def test_buckets_that_the_ledger_counts_need_no_figures() -> None:
    channels = [fresh_id() for _ in range(3)]
    for channel_id in channels:
        for bucket in (300, 301):
            set_count(channel_id, bucket, 7)
            measure(channel_id, bucket, 9)
    with record_statements() as sent:
        counts = count_buckets_in(channels)
    assert counts == {channel_id: [BucketCount(300, 7), BucketCount(301, 7)] for channel_id in channels}
    assert len(sent) == len(channels)


def test_figures_count_the_other_buckets() -> None:
    channel_id = fresh_id()
    set_count(channel_id, 300, 7)
    for bucket in (301, 302):
        ledger.ensure_row(channel_id, bucket)
    at = measure(channel_id, 302, 9)
    measure(channel_id, 300, 8)
    assert count_buckets(channel_id) == [BucketCount(300, 7), BucketCount(301, None), BucketCount(302, 9, at)]


def test_a_channel_without_messages_has_no_counts() -> None:
    channel_id = fresh_id()
    assert count_buckets(channel_id) == []


def test_messages_that_are_read_next_need_no_ledger() -> None:
    channel_id = fresh_id()
    first, _ = bucket_ids(300)
    write_messages(channel_id, [first, first + 1, first + 2])
    count_buckets(channel_id)
    with record_statements() as sent:
        page = read_around(channel_id, first + 1, 3)
    assert [message.message_id for message in page.messages] == [first + 2, first + 1, first]
    assert not [cql for cql in sent if "bucket_ledger" in cql]
