"""The gateway's operations: late posts, timestamps, races with deletes, withdrawals, refusals."""

import datetime as dt
import json
import time
from typing import Any

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, Forbidden, NotFound, StoreUnavailable
from chatstore.domain.live import EMPTY, UNKNOWN, Live
from chatstore.domain.messages import Message
from chatstore.domain.milliseconds import DAY_MS, HOUR_MS, MINUTE_MS
from chatstore.domain.snowflakes import first_id_at
from chatstore.domain.withdrawals import Withdrawals
from chatstore.operations.coordination.clock import postgres_now_us, wall_clock_us
from chatstore.operations.gateway import messages
from chatstore.store import authors, cassandra, ledger, withdrawn
from chatstore.store import messages as rows
from chatstore.store.reading.reader import read_page
from tests.chatstore.channels import VICTOR, fresh_id, now_ms, write_messages
from tests.fake_time import FakeTime
from tests.pins import pinned_ids

VERA = 4343


def post(channel_id: int, *, minutes_ago: float = 0, content: str = "hello") -> int:
    """Post as Victor under an id chosen by the gateway."""
    message_id = first_id_at(now_ms() - int(minutes_ago * MINUTE_MS))
    messages.post_message(channel_id, author_id=VICTOR, content=content, message_id=message_id)
    return message_id


def test_a_post_is_on_the_newest_page_at_once() -> None:
    channel_id = fresh_id()
    assert not read_page(channel_id).messages
    posted = messages.post_message(channel_id, author_id=VICTOR, content="hello", mentions=[5])
    assert read_page(channel_id).messages == [posted]
    assert abs((posted.posted_at - dt.datetime.now(dt.UTC)).total_seconds()) < 60


def test_a_post_is_recorded_for_its_author_and_in_the_ledger() -> None:
    channel_id, author_id = fresh_id(), fresh_id()
    posted = messages.post_message(channel_id, author_id=author_id, content="hello")
    assert list(authors.author_buckets(author_id)) == [(posted.bucket, channel_id)]
    assert ledger.read_ledger(channel_id) == [(posted.bucket, UNKNOWN)]


def test_posting_the_same_id_again_changes_nothing() -> None:
    channel_id = fresh_id()
    message_id = post(channel_id)
    once = read_page(channel_id)
    messages.post_message(channel_id, author_id=VICTOR, content="hello", message_id=message_id)
    assert read_page(channel_id) == once


def test_a_late_post_clears_the_ledger_bounds() -> None:
    channel_id = fresh_id()
    bucket = bucket_of(first_id_at(now_ms() - 30 * DAY_MS))
    ledger.set_live(channel_id, bucket, EMPTY, read_began_us=postgres_now_us())
    assert not read_page(channel_id).messages
    message_id = post(channel_id, minutes_ago=30 * DAY_MS / MINUTE_MS)
    assert ledger.read_live(channel_id, bucket) == UNKNOWN
    assert [message.message_id for message in read_page(channel_id).messages] == [message_id]


def test_a_set_whose_read_missed_a_late_post_loses_to_it() -> None:
    channel_id = fresh_id()
    read_began = postgres_now_us()
    message_id = post(channel_id, minutes_ago=51)
    ledger.set_live(channel_id, bucket_of(message_id), EMPTY, read_began_us=read_began)
    assert ledger.read_live(channel_id, bucket_of(message_id)) == UNKNOWN
    assert [message.message_id for message in read_page(channel_id).messages] == [message_id]


def test_a_late_post_clears_after_its_write_too() -> None:
    channel_id = fresh_id()
    message_id = post(channel_id, minutes_ago=60)
    written = rows.newest_writetime(channel_id, message_id)
    assert written is not None
    assert _clear_stamp(channel_id, bucket_of(message_id)) > written


def _clear_stamp(channel_id: int, bucket: int) -> int:
    cql = "SELECT WRITETIME(live) FROM bucket_ledger WHERE channel_id = ? AND bucket = ?"
    stamp: int = cassandra.execute(cql, (channel_id, bucket))[0][0]
    return stamp


def test_a_current_post_keeps_the_ledger_bounds_of_older_ids() -> None:
    channel_id = fresh_id()
    message_id = first_id_at(now_ms())
    live = Live(first_id_at(now_ms() - 2 * HOUR_MS), None, None)
    ledger.set_live(channel_id, bucket_of(message_id), live, read_began_us=postgres_now_us())
    post(channel_id, minutes_ago=40)
    assert ledger.read_live(channel_id, bucket_of(message_id)) == live


def test_an_edit_changes_text_and_time_and_nothing_else() -> None:
    channel_id = fresh_id()
    posted = messages.post_message(channel_id, author_id=VICTOR, content="one", flags=4, stickers=["{}"])
    edited = messages.edit_message(channel_id, posted.message_id, actor=VICTOR, content="two")
    found = rows.read_message(channel_id, posted.message_id)
    assert found is not None
    assert (found.content, found.flags, list(found.stickers)) == ("two", 4, ["{}"])
    assert found.edited_at is not None
    assert edited.edited_at is not None
    assert abs(found.edited_at - edited.edited_at) < dt.timedelta(milliseconds=2)


def test_an_edit_wins_over_a_row_from_a_fast_clock() -> None:
    channel_id, message_id = fresh_id(), first_id_at(now_ms() - DAY_MS)
    (written,) = write_messages(channel_id, [message_id])
    ahead = time.time_ns() // 1000 + 3_000_000
    rows.insert_message(written, stamp_us=ahead)
    messages.edit_message(channel_id, message_id, actor=VICTOR, content="two")
    found = rows.read_message(channel_id, message_id)
    assert found is not None
    assert found.content == "two"
    assert rows.newest_writetime(channel_id, message_id) == ahead + 1


def test_a_withdrawal_wins_over_a_row_from_a_fast_clock() -> None:
    channel_id, message_id = fresh_id(), first_id_at(now_ms() - DAY_MS)
    (written,) = write_messages(channel_id, [message_id])
    rows.insert_message(written, stamp_us=time.time_ns() // 1000 + 3_000_000)
    assert messages.withdraw_message(channel_id, message_id, actor=VICTOR)
    assert rows.read_message(channel_id, message_id) is None


def test_a_withdrawal_is_recorded_and_can_be_repeated() -> None:
    channel_id = fresh_id()
    message_id = post(channel_id)
    assert messages.withdraw_message(channel_id, message_id, actor=VICTOR)
    assert not messages.withdraw_message(channel_id, message_id, actor=VICTOR)
    assert withdrawn.read_withdrawals(channel_id, bucket_of(message_id)) == Withdrawals({message_id})
    assert not read_page(channel_id).messages


def test_an_edit_that_raced_a_delete_is_hidden_and_counted() -> None:
    channel_id = fresh_id()
    kept, late = post(channel_id, minutes_ago=2), post(channel_id, minutes_ago=1)
    rows.delete_row(channel_id, late, stamp_us=time.time_ns() // 1000)
    rows.update_columns(channel_id, late, {"content": "late"}, stamp_us=time.time_ns() // 1000 + 1)
    page = read_page(channel_id)
    assert ([message.message_id for message in page.messages], page.hidden) == ([kept], 1)
    with pytest.raises(NotFound):
        messages.edit_message(channel_id, late, actor=VICTOR, content="again")


def test_only_the_author_edits_or_withdraws() -> None:
    channel_id = fresh_id()
    message_id = post(channel_id)
    with pytest.raises(Forbidden):
        messages.edit_message(channel_id, message_id, actor=VERA, content="not mine")
    with pytest.raises(Forbidden):
        messages.withdraw_message(channel_id, message_id, actor=VERA)
    found = rows.read_message(channel_id, message_id)
    assert found is not None
    assert found.content == "hello"
    assert withdrawn.read_withdrawals(channel_id, bucket_of(message_id)) == Withdrawals()


def test_any_user_can_pin_and_unpin() -> None:
    channel_id = fresh_id()
    message_id = post(channel_id)
    for _ in range(2):
        assert messages.pin_message(channel_id, message_id, actor=VERA).pinned
    assert pinned_ids(channel_id) == [message_id]
    assert [message.pinned for message in read_page(channel_id).messages] == [True]
    assert not messages.unpin_message(channel_id, message_id, actor=VERA).pinned
    assert pinned_ids(channel_id) == []
    assert [message.pinned for message in read_page(channel_id).messages] == [False]


def test_a_missing_message_is_neither_edited_nor_pinned() -> None:
    channel_id, message_id = fresh_id(), first_id_at(now_ms() - DAY_MS)
    with pytest.raises(NotFound):
        messages.edit_message(channel_id, message_id, actor=VICTOR, content="x")
    with pytest.raises(NotFound):
        messages.pin_message(channel_id, message_id, actor=VICTOR)
    assert rows.newest_writetime(channel_id, message_id) is None


def test_ids_and_texts_that_cannot_be_stored_are_refused() -> None:
    channel_id = fresh_id()
    with pytest.raises(BadInput, match="is in the future"):
        messages.post_message(
            channel_id, author_id=VICTOR, content="x", message_id=first_id_at(now_ms() + 2 * MINUTE_MS)
        )
    with pytest.raises(BadInput, match="does not fit 64 bits"):
        messages.post_message(channel_id, author_id=2**63, content="x")
    with pytest.raises(BadInput, match="half a character"):
        messages.post_message(channel_id, author_id=VICTOR, content="\ud83d")
    assert ledger.read_ledger(channel_id) == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "a\0b",
        "\u202edrawkcab",
        "\N{WOMAN}\u200d\N{GIRL}" * 1333,
        "w" * 4_000,
        "<script>alert(1)</script>",
    ],
)
def test_any_text_is_stored_unchanged(content: str) -> None:
    channel_id = fresh_id()
    message_id = post(channel_id, content=content)
    found = rows.read_message(channel_id, message_id)
    assert found is not None
    assert found.content == content


def test_texts_up_to_discord_s_limit_are_stored() -> None:
    channel_id = fresh_id()
    cards = [json.dumps({"title": "t" * 256, "description": "d" * 344})] * 10
    posted = messages.post_message(
        channel_id, author_id=VICTOR, content="w" * 4_000, author_name="n" * 80, embeds=cards, mentions=[VERA] * 100
    )
    assert read_page(channel_id).messages == [posted]


def test_an_edit_keeps_the_time_given_by_the_gateway() -> None:
    channel_id = fresh_id()
    message_id = post(channel_id)
    posted_at = dt.datetime(2024, 3, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    messages.edit_message(channel_id, message_id, actor=VICTOR, content="x", edited_at=posted_at)
    found = rows.read_message(channel_id, message_id)
    assert found is not None
    assert found.edited_at == posted_at


def test_a_write_is_retried_until_it_succeeds() -> None:
    left: list[float] = []

    def write(seconds: float) -> None:
        left.append(seconds)
        if len(left) < 3:
            raise StoreUnavailable("A replica did not answer in time.")

    messages.retry_until_deadline(write, began_us=wall_clock_us())
    assert len(left) == 3
    assert all(0 < seconds <= messages.ATTEMPT_TIMEOUT_SECONDS for seconds in left)


def test_a_write_is_given_up_four_seconds_after_its_timestamp(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeTime()
    monkeypatch.setattr(messages, "time", clock)
    monkeypatch.setattr(messages, "wall_clock_us", lambda: round(clock.now * 1_000_000))
    began = clock.now

    def write(seconds: float) -> None:
        clock.now += min(seconds, 0.7)
        raise StoreUnavailable("1 of the 2 replicas is up.")

    with pytest.raises(StoreUnavailable, match=r"1 of the 2 replicas is up\. The write was abandoned"):
        messages.retry_until_deadline(write, began_us=round(began * 1_000_000))
    took = clock.now - began
    assert messages.WRITE_DEADLINE_SECONDS - 1 < took <= messages.WRITE_DEADLINE_SECONDS


def test_a_write_sent_too_late_after_its_timestamp_is_not_reported_as_done() -> None:
    written: list[float] = []
    with pytest.raises(StoreUnavailable, match="abandoned; try again"):
        messages.retry_until_deadline(written.append, began_us=wall_clock_us() - 14_000_000)
    assert written == []


def test_a_write_during_a_process_pause_is_not_reported_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeTime()
    monkeypatch.setattr(messages, "time", clock)
    monkeypatch.setattr(messages, "wall_clock_us", lambda: round(clock.now * 1_000_000))

    def write(seconds: float) -> None:
        clock.now += 14

    with pytest.raises(StoreUnavailable, match="abandoned; try again"):
        messages.retry_until_deadline(write, began_us=round(clock.now * 1_000_000))


def test_a_late_edit_is_refused_and_its_retry_has_a_new_timestamp(monkeypatch: pytest.MonkeyPatch) -> None:
    channel_id = fresh_id()
    message_id = post(channel_id, content="first")
    stamped = wall_clock_us() - 14_000_000
    with monkeypatch.context() as still:
        still.setattr(messages, "_stamp_after", lambda *_: (stamped, stamped))
        with pytest.raises(StoreUnavailable, match="abandoned; try again"):
            messages.edit_message(channel_id, message_id, actor=VICTOR, content="edited")
    began = wall_clock_us()
    messages.edit_message(channel_id, message_id, actor=VICTOR, content="edited")
    found = rows.read_message(channel_id, message_id)
    assert found is not None
    assert found.content == "edited"
    newest = rows.newest_writetime(channel_id, message_id)
    assert newest is not None
    assert newest >= began


def test_a_late_post_is_visible_even_if_its_process_dies_after_the_write(monkeypatch: pytest.MonkeyPatch) -> None:
    channel_id = fresh_id()
    bucket = bucket_of(first_id_at(now_ms() - 30 * DAY_MS))
    ledger.set_live(channel_id, bucket, EMPTY, read_began_us=postgres_now_us())
    written: list[int] = []
    write, clear = rows.insert_message, ledger.clear_live

    def write_and_die(message: Message, **named: Any) -> None:
        write(message, **named)
        written.append(message.message_id)

    def clear_while_alive(*place: int) -> None:
        if not written:
            clear(*place)

    monkeypatch.setattr(rows, "insert_message", write_and_die)
    monkeypatch.setattr(ledger, "clear_live", clear_while_alive)
    post(channel_id, minutes_ago=30 * DAY_MS / MINUTE_MS)
    assert [message.message_id for message in read_page(channel_id).messages] == written
