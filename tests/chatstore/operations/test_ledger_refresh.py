"""The ledger records the result of one read of a whole bucket, made by the job that locked the channel."""

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import WriteRefused
from chatstore.domain.live import EMPTY, UNKNOWN, Live
from chatstore.domain.milliseconds import DAY_MS, HOUR_MS, MINUTE_MS
from chatstore.domain.snowflakes import first_id_at
from chatstore.operations.coordination.channel_lock import lock_channel, release_channel
from chatstore.operations.coordination.clock import stamp_now_us
from chatstore.operations.ledger import refresh
from chatstore.operations.ledger.refresh import refresh_bucket
from chatstore.store import figures, ledger
from chatstore.store.reading.reader import read_page
from tests.chatstore.channels import (
    fresh_id,
    ids_of,
    now_ms,
    spread_ids,
    write_authorless,
    write_messages,
)

JOB = "bookkeeping"


def locked_channel() -> int:
    channel_id = fresh_id()
    assert lock_channel(channel_id, job=JOB)
    return channel_id


def test_a_sealed_bucket_is_recorded_completely() -> None:
    channel_id = locked_channel()
    ids = spread_ids(20, newest_ms=now_ms() - 100 * DAY_MS)
    bucket = bucket_of(ids[0])
    ids = [one for one in ids if bucket_of(one) == bucket]
    write_messages(channel_id, ids)
    assert refresh_bucket(channel_id, bucket, job=JOB) == Live(ids[-1], ids[0], len(ids))
    assert ledger.read_live(channel_id, bucket) == Live(ids[-1], ids[0], len(ids))
    assert figures.read_figures(channel_id)[bucket]["live_rows"].value == len(ids)
    assert ids_of(read_page(channel_id).messages) == ids


def test_an_empty_sealed_bucket_is_not_read_again() -> None:
    channel_id = locked_channel()
    ledger.ensure_row(channel_id, 300)
    assert refresh_bucket(channel_id, 300, job=JOB) == EMPTY
    assert ledger.read_live(channel_id, 300) == EMPTY
    assert figures.read_figures(channel_id)[300]["live_rows"].value == 0


def test_an_open_bucket_records_only_a_lower_bound_of_at_most_an_hour_ago() -> None:
    channel_id = locked_channel()
    now = now_ms()
    fresh = first_id_at(now)
    write_messages(channel_id, [fresh])
    live = refresh_bucket(channel_id, bucket_of(fresh), job=JOB)
    assert live.first is not None
    assert abs(live.first - first_id_at(now - HOUR_MS)) < first_id_at(now + MINUTE_MS) - first_id_at(now)
    assert (live.last, live.count) == (None, None)
    assert ids_of(read_page(channel_id).messages) == [fresh]


def test_the_lower_bound_of_an_open_bucket_is_its_oldest_message() -> None:
    channel_id = locked_channel()
    now = now_ms()
    old = first_id_at(now - 3 * HOUR_MS)
    write_messages(channel_id, [old])
    if bucket_of(old) == bucket_of(first_id_at(now)):
        assert refresh_bucket(channel_id, bucket_of(old), job=JOB) == Live(old, None, None)
    else:
        # If the bucket changed within these three hours, it is sealed and recorded completely.
        assert refresh_bucket(channel_id, bucket_of(old), job=JOB) == Live(old, old, 1)


def test_a_row_without_an_author_is_still_read_by_maintenance() -> None:
    channel_id = locked_channel()
    (old,) = spread_ids(1, newest_ms=now_ms() - 100 * DAY_MS)
    write_authorless(channel_id, [old])
    assert refresh_bucket(channel_id, bucket_of(old), job=JOB) == Live(old, old, 1)
    assert figures.read_figures(channel_id)[bucket_of(old)]["live_rows"].value == 0
    assert read_page(channel_id).hidden == 1


def test_a_clear_after_the_start_of_a_read_wins_over_its_result() -> None:
    channel_id = locked_channel()
    ledger.ensure_row(channel_id, 300)
    ledger.clear_live(channel_id, 300)
    # The set has a timestamp ten seconds before the start of its read, so it is older than the clear.
    refresh_bucket(channel_id, 300, job=JOB)
    assert ledger.read_live(channel_id, 300) == UNKNOWN


def test_a_job_cannot_reconcile_a_channel_it_has_not_locked() -> None:
    channel_id = fresh_id()
    ledger.ensure_row(channel_id, 300)
    with pytest.raises(WriteRefused, match="is not locked"):
        refresh_bucket(channel_id, 300, job=JOB)
    lock_channel(channel_id, job="purge 1")
    with pytest.raises(WriteRefused, match="is not locked"):
        refresh_bucket(channel_id, 300, job=JOB)
    assert ledger.read_live(channel_id, 300) == UNKNOWN


def test_a_job_that_lost_its_lock_before_its_read_began_records_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    channel_id = fresh_id()
    assert lock_channel(channel_id, job=JOB, lease_seconds=60)
    ids = spread_ids(20, newest_ms=now_ms() - 100 * DAY_MS)
    bucket = bucket_of(ids[0])
    write_messages(channel_id, ids)
    ledger.clear_live(channel_id, bucket)

    def outlive_lease() -> int:
        release_channel(channel_id, job=JOB)
        assert lock_channel(channel_id, job="import:1")
        return stamp_now_us()

    monkeypatch.setattr(refresh, "stamp_now_us", outlive_lease)
    with pytest.raises(WriteRefused, match="not locked"):
        refresh_bucket(channel_id, bucket, job=JOB)
    assert ledger.read_live(channel_id, bucket) == UNKNOWN
