"""The reader counts what it encounters and flushes the counts without delaying a page."""

import time
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from chatstore.domain.buckets import bucket_at, bucket_ids, bucket_of
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.live import EMPTY
from chatstore.domain.milliseconds import DAY_MS
from chatstore.domain.snowflakes import ms_of
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.store import counters, ledger, redis
from chatstore.store.reading.reader import read_around, read_page
from tests.chatstore.channels import (
    delete_rows,
    fresh_id,
    now_ms,
    spread_ids,
    write_authorless,
    write_messages,
)

NAMES = counters.NAMES


@pytest.fixture(autouse=True)
def _own_totals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use a separate key: readers of other tests count too, in other processes or within the last second."""
    counters.send_counts()
    key = f"{counters.KEY}:{fresh_id()}"
    monkeypatch.setattr(counters, "KEY", key)
    yield
    redis.redis_client().delete(key)


def counted(name: str) -> int:
    counters.send_counts()
    return counters.read_all()[name]


def test_rows_without_an_author_are_counted_where_a_page_hides_them() -> None:
    channel_id = fresh_id()
    ids = spread_ids(20, newest_ms=now_ms() - 100 * DAY_MS)
    write_messages(channel_id, ids)
    write_authorless(channel_id, [ids[3] + 1, ids[5] + 1])
    assert read_page(channel_id).hidden == 2
    assert counted(counters.HIDDEN) == 2
    assert read_around(channel_id, ids[4], limit=4).hidden == 2
    assert counted(counters.HIDDEN) == 4


def test_empty_buckets_are_counted_when_a_page_skips_them() -> None:
    channel_id = fresh_id()
    newest, oldest = spread_ids(2, newest_ms=now_ms() - 100 * DAY_MS, step_ms=300 * DAY_MS)
    write_messages(channel_id, [newest, oldest])
    for bucket in range(bucket_of(newest) - 5, bucket_of(newest)):
        ledger.set_live(channel_id, bucket, EMPTY, read_began_us=postgres_now_us())
    assert len(read_page(channel_id, limit=1).messages) == 1
    assert counted(counters.SKIPPED) == 5
    assert len(read_page(channel_id).messages) == 2
    assert counted(counters.SKIPPED) == 10
    # A page upwards skips none of them, a page downwards all.
    read_page(channel_id, after=newest - 1)
    assert counted(counters.SKIPPED) == 15


def test_a_page_that_ends_at_its_deadline_is_counted() -> None:
    channel_id = fresh_id()
    write_messages(channel_id, spread_ids(40, newest_ms=now_ms() - 100 * DAY_MS, step_ms=20 * DAY_MS))
    page = read_page(channel_id, deadline_seconds=0)
    assert page.older is not None
    assert counted(counters.LATE) >= 1


@pytest.mark.slow
def test_a_read_that_fails_on_tombstones_is_counted_each_time() -> None:
    channel_id = fresh_id()
    # In one bucket: where another one begins among them, neither has too many tombstones.
    _first, last = bucket_ids(bucket_at(now_ms() - 100 * DAY_MS))
    ids = spread_ids(110_000, newest_ms=ms_of(last), step_ms=1)
    write_messages(channel_id, ids[-10:])
    delete_rows(channel_id, ids[:-10])
    assert len(read_page(channel_id, deadline_seconds=30).messages) == 10
    assert counted(counters.ABORTED) >= 1


def test_the_start_of_counting_is_recorded() -> None:
    assert counters.counting_since() is None
    assert counters.read_all() == dict.fromkeys(NAMES, 0)
    counters.count(counters.HEALED, 3)
    assert counted(counters.HEALED) == 3
    since = counters.counting_since()
    assert since is not None
    assert abs(since.timestamp() - time.time()) < 10


def test_counts_are_flushed_automatically_within_seconds() -> None:
    counters.count(counters.HEALED)
    give_up = time.monotonic() + 300
    while counters.read_all()[counters.HEALED] < 1:
        assert time.monotonic() < give_up
        time.sleep(0.05)


def test_a_page_is_read_without_redis_and_its_counts_are_kept(settings: Settings) -> None:
    channel_id = fresh_id()
    (message_id,) = spread_ids(1, newest_ms=now_ms() - 100 * DAY_MS)
    write_messages(channel_id, [message_id])
    write_authorless(channel_id, [message_id + 1])
    read_page(channel_id)
    counters.send_counts()
    where = settings.REDIS_URL
    try:
        # A closed port.
        settings.REDIS_URL = "redis://127.0.0.1:9/0"
        redis._process.forget()
        assert read_page(channel_id).hidden == 1
        with pytest.raises(StoreUnavailable):
            counters.send_counts()
    finally:
        settings.REDIS_URL = where
        redis._process.forget()
    assert counted(counters.HIDDEN) == 2
