"""A bare id is searched in channels that were written to in its bucket, the likeliest first."""

from chatstore.domain.buckets import bucket_of
from chatstore.domain.live import EMPTY
from chatstore.domain.milliseconds import DAY_MS
from chatstore.operations.coordination.clock import wall_clock_us
from chatstore.store import ledger, withdrawn
from chatstore.store.locating import CHANNELS_PER_CHECK, Located, locate_message
from tests.chatstore.channels import VICTOR, fresh_id, now_ms, spread_ids, write_authorless, write_messages


def old_ids(count: int) -> list[int]:
    return spread_ids(count, newest_ms=now_ms() - 40 * DAY_MS)


def test_it_is_found_among_channels_that_existed_then() -> None:
    ids = old_ids(3)
    home, busy, elsewhere = fresh_id(), fresh_id(), fresh_id()
    write_messages(busy, ids[1:])
    write_messages(home, ids[:1])
    ledger.ensure_row(elsewhere, bucket_of(ids[0]) - 1)
    located = locate_message([elsewhere, busy, home], ids[0], deadline_seconds=60)
    assert located == Located(home, channels_searched=2, is_whole=True)


def test_an_unknown_message_is_not_found_and_the_number_of_channels_is_returned() -> None:
    ids = old_ids(2)
    channels = [fresh_id() for _ in range(3)]
    for channel_id in channels[:2]:
        write_messages(channel_id, ids[:1])
    assert locate_message(channels, ids[1], deadline_seconds=60) == Located(None, channels_searched=2, is_whole=True)


def test_a_withdrawn_message_leads_to_its_channel() -> None:
    ids = old_ids(2)
    channel_id = fresh_id()
    write_messages(channel_id, ids[:1])
    withdrawn.note_withdrawn(channel_id, ids[1], author_id=VICTOR)
    assert locate_message([fresh_id(), channel_id], ids[1], deadline_seconds=60).channel_id == channel_id


def test_a_claim_alone_leads_to_no_channel() -> None:
    ids = old_ids(2)
    channel_id = fresh_id()
    write_messages(channel_id, ids[:1])
    withdrawn.note_claim(channel_id, ids[1], actor=VICTOR)
    assert locate_message([channel_id], ids[1], deadline_seconds=60).channel_id is None


def test_the_remains_of_an_edited_deleted_message_are_not_found() -> None:
    ids = old_ids(1)
    channel_id = fresh_id()
    write_authorless(channel_id, ids)
    assert locate_message([channel_id], ids[0], deadline_seconds=60) == Located(
        None, channels_searched=1, is_whole=True
    )


def test_a_deleted_range_is_not_read_but_its_withdrawals_are() -> None:
    ids = old_ids(2)
    channel_id = fresh_id()
    write_messages(channel_id, ids)
    withdrawn.note_withdrawn(channel_id, ids[1], author_id=VICTOR)
    ledger.set_live(channel_id, bucket_of(ids[0]), EMPTY, read_began_us=wall_clock_us() + 60_000_000)
    assert locate_message([channel_id], ids[0], deadline_seconds=60).channel_id is None
    assert locate_message([channel_id], ids[1], deadline_seconds=60).channel_id == channel_id


def test_the_deadline_ends_the_search_and_is_reported() -> None:
    ids = old_ids(1)
    first, last = fresh_id(), fresh_id()
    write_messages(first, ids)
    write_messages(last, ids)
    unknown = [fresh_id() for _ in range(CHANNELS_PER_CHECK)]
    assert locate_message([*unknown, last], ids[0], deadline_seconds=0) == Located(
        None, channels_searched=0, is_whole=False
    )
    assert locate_message([*unknown[1:], first], ids[0], deadline_seconds=0).channel_id == first
    assert locate_message(unknown, ids[0], deadline_seconds=0).is_whole


def test_without_channels_nothing_is_found() -> None:
    assert locate_message([], 7, deadline_seconds=1) == Located(None, channels_searched=0, is_whole=True)
