"""A page never reads deleted ranges: sparse, emptied and overloaded channels still open fast."""

import time
from collections.abc import Iterator

import pytest
from django.test import override_settings

from chatstore.domain.buckets import bucket_ids, bucket_of
from chatstore.domain.errors import TooManyTombstones
from chatstore.domain.live import EMPTY, Live
from chatstore.domain.messages import Message, Page
from chatstore.domain.milliseconds import DAY_MS, HOUR_MS
from chatstore.domain.snowflakes import EPOCH_MS, MAX_ID, MIN_ID, first_id_at, time_of
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.store import cassandra, ledger, messages
from chatstore.store.reading.reader import read_page, trace_newest_page
from chatstore.store.reading.search import Search
from tests.chatstore.channels import (
    VICTOR,
    delete_rows,
    fresh_id,
    ids_of,
    now_ms,
    spread_ids,
    write_authorless,
    write_messages,
)

READ_LIVE = 11_000_000
"""µs added to now, so that a set wins over the clear that the set-up wrote."""


def search_newest(channel_id: int, *, need: int, seconds: float = 60.0) -> Search:
    search = Search(
        channel_id,
        low=MIN_ID,
        high=MAX_ID,
        descending=True,
        need=need,
        deadline=time.monotonic() + seconds,
    )
    search.run()
    return search


def test_the_newest_page_of_a_busy_channel_takes_one_statement() -> None:
    channel_id = fresh_id()
    ids = spread_ids(60, newest_ms=now_ms())
    write_messages(channel_id, ids)
    assert len(search_newest(channel_id, need=20).requested) == 1
    again = search_newest(channel_id, need=20)
    assert len(again.requested) == 1
    assert [row[0] for row in again.rows] == ids[:20]


def test_the_newest_page_scans_no_tombstone_of_a_deleted_range() -> None:
    channel_id = fresh_id()
    newest = now_ms() - 60 * DAY_MS
    kept = spread_ids(60, newest_ms=newest - 40 * DAY_MS)
    dead_below, dead_bucket = (
        spread_ids(500, newest_ms=newest),
        spread_ids(500, newest_ms=newest - 20 * DAY_MS),
    )
    write_messages(channel_id, [*kept, *dead_below, *dead_bucket])
    survivor = dead_below[0] + 1
    write_messages(channel_id, [survivor])
    delete_rows(channel_id, [*dead_below, *dead_bucket])
    began = postgres_now_us() + READ_LIVE
    ledger.set_live(channel_id, bucket_of(survivor), Live(survivor, survivor, 1), read_began_us=began)
    for bucket in {bucket_of(one) for one in dead_below} - {bucket_of(survivor)}:
        ledger.set_live(channel_id, bucket, EMPTY, read_began_us=began)
    for bucket in {bucket_of(one) for one in dead_bucket} - {bucket_of(survivor)}:
        ledger.set_live(channel_id, bucket, EMPTY, read_began_us=began)

    cost = trace_newest_page(channel_id)
    assert ids_of(cost.page.messages) == [survivor, *kept[:49]]
    assert len(cost.per_replica) == len(cassandra.hosts())
    assert cost.tombstones == 0


def test_an_open_bucket_is_read_only_from_its_first_live_id() -> None:
    channel_id = fresh_id()
    alive, dead = spread_ids(10, newest_ms=now_ms()), spread_ids(300, newest_ms=now_ms() - 2 * HOUR_MS)
    ids = [one for one in alive + dead if bucket_of(one) == bucket_of(alive[0])]
    write_messages(channel_id, ids)
    delete_rows(channel_id, set(ids) - set(alive))
    began = postgres_now_us() + READ_LIVE
    ledger.set_live(channel_id, bucket_of(alive[0]), Live(min(alive), None, None), read_began_us=began)
    read_page(channel_id)
    cost = trace_newest_page(channel_id)
    assert ids_of(cost.page.messages) == [one for one in alive if one in ids]
    assert cost.tombstones == 0


def test_sparse_buckets_are_read_many_at_a_time() -> None:
    channel_id = fresh_id()
    ids = [bucket_ids(bucket)[0] + 77 for bucket in range(300, 180, -1)]
    write_messages(channel_id, ids)
    began = postgres_now_us() + READ_LIVE
    for one in ids:
        ledger.set_live(channel_id, bucket_of(one), Live(one, one, 1), read_began_us=began)
    search = search_newest(channel_id, need=51)
    assert [row[0] for row in search.rows] == ids[:51]
    # The speculative read beside the ledger (today's bucket), and one for each message.
    assert len(search.requested) <= 1 + 51


def test_a_page_over_many_sparse_buckets_is_full() -> None:
    channel_id = fresh_id()
    ids = [bucket_ids(bucket)[0] + 77 for bucket in range(300, 180, -1)]
    write_messages(channel_id, ids)
    page = read_page(channel_id, deadline_seconds=60)
    assert ids_of(page.messages) == ids[:50]
    page = read_page(channel_id, before=page.older, deadline_seconds=60)
    assert ids_of(page.messages) == ids[50:100]


def test_a_page_cut_by_its_deadline_reports_how_far_it_read_and_continues_there() -> None:
    channel_id = fresh_id()
    for bucket in range(100, 40, -1):
        ledger.ensure_row(channel_id, bucket)
    last = write_messages(channel_id, [bucket_ids(30)[0] + 5])

    first = read_page(channel_id, deadline_seconds=0)
    assert not first.messages
    assert first.older is not None
    assert first.searched_back_to == time_of(first.older)
    pages = [first, *follow_down(channel_id, first)]
    cursors = [page.older for page in pages[:-1] if page.older is not None]
    assert cursors == sorted(set(cursors), reverse=True)
    assert [message for page in pages for message in page.messages] == last
    assert len(pages) > 2


def follow_down(channel_id: int, page: Page) -> Iterator[Page]:
    """Yield the older pages, each cut short as soon as it made progress."""
    while page.older is not None:
        page = read_page(channel_id, before=page.older, deadline_seconds=0)
        yield page


def test_an_upward_page_cut_by_its_deadline_continues_where_it_ended() -> None:
    channel_id = fresh_id()
    for bucket in range(40, 100):
        ledger.ensure_row(channel_id, bucket)
    last = write_messages(channel_id, [bucket_ids(120)[0] + 5])
    page = read_page(channel_id, after=bucket_ids(40)[0], deadline_seconds=0)
    assert page.messages == []
    while page.newer is not None:
        cursor = page.newer
        page = read_page(channel_id, after=cursor, deadline_seconds=0)
        assert page.newer is None or page.newer > cursor
    assert page.messages == last


def test_rows_without_an_author_are_hidden_counted_and_not_changed() -> None:
    channel_id = fresh_id()
    ids = spread_ids(60, newest_ms=now_ms() - 30 * DAY_MS)
    hidden = [one + 1 for one in ids[:30]]
    write_messages(channel_id, ids)
    write_authorless(channel_id, hidden)
    page = read_page(channel_id, limit=10, deadline_seconds=60)
    assert ids_of(page.messages) == ids[:10]
    assert page.hidden == 10
    assert messages.read_message(channel_id, hidden[0]) is None
    seen = [row for rows in messages.read_ids(channel_id, bucket_of(ids[0])) for row in rows]
    assert (hidden[0], None) in seen


def test_a_bucket_full_of_rows_without_an_author_is_read_completely() -> None:
    channel_id = fresh_id()
    base = bucket_ids(200)[0]
    write_authorless(channel_id, range(base + 100, base + 140))
    written = write_messages(channel_id, [base + 50])
    page = read_page(channel_id, limit=2, deadline_seconds=60)
    assert (page.messages, page.older, page.hidden) == (written, None, 40)


def test_ids_before_2015_are_read_like_any_others() -> None:
    channel_id = fresh_id()
    ids = [first_id_at(EPOCH_MS - number * DAY_MS) + 3 for number in range(-5, 100, 7)]
    written = write_messages(channel_id, ids)
    assert min(ids) < 0 < max(ids)
    page = read_page(channel_id, deadline_seconds=60)
    assert page.messages == written
    assert read_page(channel_id, before=ids[5], deadline_seconds=60).messages == written[6:]
    assert messages.read_message(channel_id, ids[-1]) == written[-1]


@pytest.fixture(scope="module")
def overloaded_channel() -> tuple[int, list[int]]:
    """Return a channel in which others deleted 120,000 messages of one day by row, above 60 live ones."""
    channel_id = fresh_id()
    first = bucket_ids(250)[0]
    base_ms = time_of(first).timestamp() * 1000 + DAY_MS
    kept = spread_ids(60, newest_ms=int(base_ms))
    write_messages(channel_id, kept)
    step = (DAY_MS << 22) // 120_000
    delete_rows(channel_id, range(kept[0] + step, kept[0] + step * 120_001, step))
    return channel_id, kept


def test_the_overloaded_bucket_fails_when_read_in_one_statement(overloaded_channel: tuple[int, list[int]]) -> None:
    channel_id, kept = overloaded_channel
    with pytest.raises(TooManyTombstones):
        cassandra.execute(
            "SELECT message_id FROM messages WHERE channel_id = ? AND bucket = ? LIMIT 50",
            (channel_id, bucket_of(kept[0])),
        )


def test_a_channel_overloaded_by_row_deletes_can_still_be_opened(overloaded_channel: tuple[int, list[int]]) -> None:
    channel_id, kept = overloaded_channel
    page = read_page(channel_id, deadline_seconds=60)
    assert ids_of(page.messages) == kept[:50]
    assert page.older == kept[49]


def test_an_overloaded_channel_can_be_opened_with_short_pages_too(overloaded_channel: tuple[int, list[int]]) -> None:
    channel_id, kept = overloaded_channel
    first = read_page(channel_id, deadline_seconds=0)
    pages = [first, *follow_down(channel_id, first)]
    assert [one for page in pages for one in ids_of(page.messages)] == kept
    assert any(page.searched_back_to for page in pages)


def test_an_overloaded_bucket_can_still_be_scanned(overloaded_channel: tuple[int, list[int]]) -> None:
    channel_id, kept = overloaded_channel
    seen = [row for rows in messages.read_ids(channel_id, bucket_of(kept[0])) for row in rows]
    assert [message_id for message_id, _ in seen] == kept
    pages = messages.iterate_rows(channel_id, bucket_of(kept[0]), columns=("message_id",), ascending=True)
    assert [message_id for rows in pages for (message_id,) in rows] == kept[::-1]


@override_settings(CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN=False)
def test_with_foreign_writers_a_bucket_without_a_row_is_read() -> None:
    created = now_ms() - 300 * DAY_MS
    channel_id = first_id_at(created) + fresh_id() % (1 << 22)
    ids = [first_id_at(now_ms() - days * DAY_MS) for days in (1, 90, 91, 250)]
    others = [Message(channel_id, one, VICTOR) for one in ids]
    messages.insert_messages(others, stamp_us=messages.posted_stamp)
    assert ledger.read_ledger(channel_id) == []
    assert read_page(channel_id, deadline_seconds=60).messages == others
    assert read_page(channel_id, before=ids[0], deadline_seconds=60).messages == others[1:]
    assert read_page(channel_id, after=ids[2], deadline_seconds=60).messages == others[:2]
