"""A channel's health is read only from ledger, figures and history, whatever the number of its buckets."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from chatstore.domain.buckets import bucket_at, bucket_of
from chatstore.domain.errors import Forbidden, NotFound
from chatstore.domain.health import BucketState
from chatstore.domain.milliseconds import DAY_MS
from chatstore.domain.runs import RunState, Severity
from chatstore.domain.snowflakes import MIN_ID, first_id_at, unix_ms
from chatstore.models import JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.operations.health.channel_health import ChannelHealth, read_channel_health
from chatstore.operations.ledger.refresh import refresh_bucket
from chatstore.operations.repair_status.repair_clock import MESSAGES, read_clock
from chatstore.store import ledger
from tests.chatstore.channels import fresh_id, now_ms, spread_ids, write_messages
from tests.chatstore.figures import note
from tests.chatstore.recorded_statements import record_statements
from tests.findings import close_finding

BUCKET = 300


def channel_of_now() -> int:
    """Return a channel created just now: its only buckets are those that a test writes."""
    return first_id_at(now_ms()) | (fresh_id() % (1 << 22))


def read(channel_id: int) -> ChannelHealth:
    return read_channel_health(None, channel_id)


def test_a_channel_that_was_never_measured_is_unknown() -> None:
    channel_id = channel_of_now()
    write_messages(channel_id, spread_ids(3, newest_ms=now_ms() - 100 * DAY_MS))
    health = read(channel_id)
    (bucket,) = [entry for entry in health.buckets if entry.was_written]
    assert bucket.state == BucketState.UNKNOWN
    assert (bucket.messages, bucket.known.tombstones, bucket.known.bytes, bucket.page_us) == (None, None, None, None)
    assert (bucket.dead_percent, bucket.severity) == (None, None)
    assert (health.newest_page, health.uncounted) == ({}, 1 + (health.buckets[-1].messages is None))


def test_a_counted_bucket_shows_count_source_and_time() -> None:
    channel_id = channel_of_now()
    ids = spread_ids(60, newest_ms=now_ms() - 100 * DAY_MS, step_ms=1)
    bucket = bucket_of(ids[0])
    ids = [one for one in ids if bucket_of(one) == bucket]
    write_messages(channel_id, ids)
    lock_channel(channel_id, job="a test")
    refresh_bucket(channel_id, bucket, job="a test")
    found = read(channel_id).find(bucket)
    assert (found.state, found.messages) == (BucketState.LIVE if len(ids) >= 50 else BucketState.SPARSE, len(ids))
    assert found.messages_figure is not None
    assert found.messages_figure.source == "own read"
    assert postgres_now() - found.messages_figure.measured_at < dt.timedelta(minutes=1)


def test_the_worst_buckets_come_first_and_cheap_ones_are_left_out() -> None:
    channel_id = channel_of_now()
    for bucket in range(BUCKET, BUCKET + 5):
        ledger.ensure_row(channel_id, bucket)
    note(channel_id, BUCKET, tombstones=2_000)
    note(channel_id, BUCKET + 1, bytes=120_000_000)
    note(channel_id, BUCKET + 2, tombstones=7, page_us=21_000)
    note(channel_id, BUCKET + 3, tombstones=99, page_us=19_000)
    worst = read(channel_id).worst(8)
    assert [entry.bucket for entry in worst] == [BUCKET + 1, BUCKET, BUCKET + 2]
    assert [entry.severity for entry in worst] == [Severity.CRITICAL, Severity.WARNING, None]


def test_of_two_tombstone_counts_the_newer_one_is_used() -> None:
    channel_id = channel_of_now()
    ledger.ensure_row(channel_id, BUCKET)
    note(channel_id, BUCKET, tombstones=60_000, hours_ago=5)
    assert read(channel_id).find(BUCKET).known.tombstones == 60_000
    note(channel_id, BUCKET, tombstones_seen_by_repair=3, source="top partitions")
    assert read(channel_id).find(BUCKET).known.tombstones == 3


def test_a_figure_is_old_after_26_hours() -> None:
    channel_id = channel_of_now()
    note(channel_id, BUCKET, tombstones=1, hours_ago=25.9)
    note(channel_id, BUCKET + 1, tombstones=1, hours_ago=26.1)
    health = read(channel_id)
    assert not health.is_stale(health.find(BUCKET).tombstones_figure)
    assert health.is_stale(health.find(BUCKET + 1).tombstones_figure)


def test_every_bucket_from_the_channels_creation_to_now_is_there_except_long_gaps() -> None:
    now = now_ms()
    channel_id = first_id_at(now - 30 * DAY_MS)
    buckets = [entry.bucket for entry in read(channel_id).buckets]
    assert buckets == list(range(bucket_of(channel_id), bucket_at(now) + 1))
    ledger.ensure_row(channel_id, bucket_at(now) - 400)
    with_gap = [entry.bucket for entry in read(channel_id).buckets]
    assert with_gap == [bucket_at(now) - 400, *buckets]


def test_buckets_before_2015_are_supported() -> None:
    channel_id = first_id_at(now_ms() - 4_400 * DAY_MS)
    ledger.ensure_row(channel_id, -40)
    note(channel_id, -40, tombstones=5)
    found = read(channel_id).find(-40)
    assert found.known.tombstones == 5
    assert found.last_day.year < 2015


def test_a_future_or_impossible_bucket_is_not_found() -> None:
    health = read(channel_of_now())
    for bucket in (bucket_at(now_ms()) + 1, bucket_of(MIN_ID) - 1):
        with pytest.raises(NotFound):
            health.find(bucket)
    assert not health.find(BUCKET).was_written
    assert health.find(BUCKET).state == BucketState.EMPTY


def test_with_foreign_writers_a_bucket_without_a_row_is_not_empty(settings: Settings) -> None:
    settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN = False
    assert read(channel_of_now()).find(BUCKET).state == BucketState.UNKNOWN


def test_the_last_repair_is_that_of_the_repair_clock_and_covers_the_buckets_that_were_there() -> None:
    channel_id = channel_of_now()
    ledger.ensure_row(channel_id, BUCKET)
    began = postgres_now()
    # It may have continued what an earlier night began; and repairs of other tools count too.
    run = JobRun.objects.create(job="repair", due_at=began, started_at=began, ended_at=began, state=RunState.DONE)
    health = read(channel_id)
    assert health.last_repair_at == health.find(BUCKET).repaired_at == read_clock(MESSAGES).began_at
    own = unix_ms(postgres_now())
    note(channel_id, BUCKET, source="repair", repaired_at=own)
    repaired = read(channel_id).find(BUCKET).repaired
    assert repaired is not None
    assert repaired.source == "repair"
    run.delete()


def test_open_findings_of_its_buckets_are_named() -> None:
    channel_id = channel_of_now()
    subject = f"{channel_id}:{BUCKET}"
    open_finding("heavy bucket", subject, Problem(Severity.WARNING, "It is heavy."))
    assert [finding.summary for finding in read(channel_id).findings] == ["It is heavy."]
    close_finding("heavy bucket", subject)
    assert read(channel_id).findings == []


def test_reading_health_needs_the_permission(mona: User, otto: User) -> None:
    channel_id = channel_of_now()
    assert read_channel_health(otto, channel_id).channel_id == channel_id
    with pytest.raises(Forbidden):
        read_channel_health(mona, channel_id)


@pytest.mark.parametrize("count", [3, 200])
def test_the_number_of_statements_does_not_grow_with_the_buckets(count: int) -> None:
    channel_id = channel_of_now()
    newest = bucket_at(now_ms())
    for bucket in range(newest - count, newest):
        ledger.ensure_row(channel_id, bucket)
        note(channel_id, bucket, tombstones=bucket % 7, live_rows=100)
    read(channel_id)
    with record_statements() as statements, CaptureQueriesContext(connection) as queries:
        health = read(channel_id)
    assert sum(entry.was_written for entry in health.buckets) == count
    assert len(statements) == 3
    assert not [cql for cql in statements if "FROM messages" in cql]
    assert len(queries) == 2
