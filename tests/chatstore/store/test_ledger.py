"""The ledger: a clear always wins, and a set never hides a later write."""

import time

from chatstore.domain.buckets import bucket_of
from chatstore.domain.live import EMPTY, UNKNOWN, Live
from chatstore.domain.milliseconds import DAY_MS
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.store import ledger
from chatstore.store.ledger import NewestRows
from chatstore.store.reading.ledger_window import LedgerWindow
from chatstore.store.reading.reader import read_page
from tests.chatstore.channels import fresh_id, ids_of, now_ms, spread_ids, write_messages

KNOWN = Live(5, 9, 3)


def test_a_bucket_that_was_never_written_has_no_row() -> None:
    assert ledger.read_ledger(fresh_id()) == []
    assert ledger.read_live(fresh_id(), 7) is None


def test_a_new_row_means_unknown_bounds() -> None:
    channel_id = fresh_id()
    ledger.ensure_row(channel_id, 7)
    assert ledger.read_ledger(channel_id) == [(7, UNKNOWN)]


def test_rows_come_newest_bucket_first_also_before_2015() -> None:
    channel_id = fresh_id()
    for bucket in (3, -5, 12, 0):
        ledger.ensure_row(channel_id, bucket)
    assert [bucket for bucket, _ in ledger.read_ledger(channel_id)] == [12, 3, 0, -5]
    assert [bucket for bucket, _ in ledger.read_ledger(channel_id, newest=2)] == [12, 3]


def test_the_result_of_a_read_is_recorded() -> None:
    channel_id = fresh_id()
    ledger.ensure_row(channel_id, 7)
    ledger.set_live(channel_id, 7, KNOWN, read_began_us=postgres_now_us())
    assert ledger.read_live(channel_id, 7) == KNOWN


def test_creating_a_row_again_keeps_its_bounds() -> None:
    channel_id = fresh_id()
    ledger.set_live(channel_id, 7, EMPTY, read_began_us=postgres_now_us())
    ledger.ensure_row(channel_id, 7)
    assert ledger.read_live(channel_id, 7) == EMPTY


def test_a_set_loses_to_a_clear_that_came_after_its_read_began() -> None:
    channel_id = fresh_id()
    began = postgres_now_us()
    ledger.clear_live(channel_id, 7)
    ledger.set_live(channel_id, 7, EMPTY, read_began_us=began)
    assert ledger.read_live(channel_id, 7) == UNKNOWN


def test_a_set_loses_to_a_clear_from_a_clock_five_seconds_slow() -> None:
    channel_id = fresh_id()
    ledger.clear_live(channel_id, 7)
    five_seconds_later = postgres_now_us() + 5_000_000
    ledger.set_live(channel_id, 7, EMPTY, read_began_us=five_seconds_later)
    assert ledger.read_live(channel_id, 7) == UNKNOWN


def test_a_read_well_after_the_clear_may_set_again() -> None:
    channel_id = fresh_id()
    ledger.clear_live(channel_id, 7)
    ledger.set_live(channel_id, 7, KNOWN, read_began_us=postgres_now_us() + 11_000_000)
    assert ledger.read_live(channel_id, 7) == KNOWN


def test_pages_reuse_ledger_rows_for_one_second() -> None:
    channel_id = fresh_id()
    old = spread_ids(3, newest_ms=now_ms() - 40 * DAY_MS)
    write_messages(channel_id, old)
    assert ids_of(read_page(channel_id).messages) == old
    # Another process posts into a bucket that this one has not seen yet.
    new = spread_ids(1, newest_ms=now_ms() - 20 * DAY_MS)
    write_messages(channel_id, new)
    known = NewestRows(ledger.read_ledger(channel_id)[1:], time.monotonic(), is_whole=True)
    ledger.cache_newest(channel_id, known)
    assert ids_of(read_page(channel_id).messages) == old
    time.sleep(ledger.CACHE_SECONDS)
    assert ids_of(read_page(channel_id).messages) == new + old


def test_a_page_beyond_the_newest_rows_caches_all_rows_it_read() -> None:
    channel_id = fresh_id()
    old = spread_ids(2, newest_ms=now_ms() - 400 * DAY_MS)
    write_messages(channel_id, old)
    last = bucket_of(old[0])
    for bucket in range(last + 1, last + 21):
        ledger.ensure_row(channel_id, bucket)
        ledger.set_live(channel_id, bucket, EMPTY, read_began_us=postgres_now_us() + 11_000_000)
    assert ids_of(read_page(channel_id).messages) == old

    def walk() -> list[int]:
        window = LedgerWindow(channel_id, start=ledger.NEWEST_BUCKET, descending=True)
        ready.append(window.is_ready)
        return [len(window.next_rows()), len(window.next_rows())]

    ready: list[bool] = []
    assert walk() == [21, 0]
    # After the cache is cleared there is one long read, not a short one followed by a long one.
    ledger.expire_cache(channel_id)
    assert walk() == [21, 0]
    assert ready == [True, False]


def test_invalidated_cache_rows_are_not_extended() -> None:
    channel_id = fresh_id()
    rows = [(bucket, EMPTY) for bucket in range(20, 0, -1)]
    short = NewestRows(rows[:8], time.monotonic(), is_whole=False)
    ledger.cache_newest(channel_id, short)
    ledger.expire_cache(channel_id)
    ledger.extend_cached(channel_id, NewestRows(rows, short.requested_at, is_whole=True))
    assert ledger.cached_newest(channel_id) is None
