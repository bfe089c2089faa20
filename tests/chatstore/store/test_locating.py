"""A bare id is searched in channels that were written to in its bucket, the likeliest first."""

from chatstore.domain.buckets import bucket_of
from chatstore.domain.live import NOTHING
from chatstore.operations.coordination.clock import wall_clock_us
from chatstore.store import ledger, withdrawn
from chatstore.store.locating import CHANNELS_AT_ONCE, Located, locate_message
from tests.chatstore.arranging import DAY_MS, VICTOR, fresh_id, now_ms, spread_ids, write_authorless, write_messages


def old_ids(count: int) -> list[int]:
    return spread_ids(count, newest_ms=now_ms() - 40 * DAY_MS)


def test_it_is_found_among_channels_that_were_there_then() -> None:
    ids = old_ids(3)
    home, busy, elsewhere = fresh_id(), fresh_id(), fresh_id()
    write_messages(busy, ids[1:])
    write_messages(home, ids[:1])
    ledger.ensure_row(elsewhere, bucket_of(ids[0]) - 1)
    located = locate_message([elsewhere, busy, home], ids[0], deadline_seconds=60)
    assert located == Located(home, there_then=2, is_whole=True)


def test_what_nobody_has_is_nowhere_and_says_how_many_were_asked() -> None:
    ids = old_ids(2)
    channels = [fresh_id() for _ in range(3)]
    for channel_id in channels[:2]:
        write_messages(channel_id, ids[:1])
    assert locate_message(channels, ids[1], deadline_seconds=60) == Located(None, there_then=2, is_whole=True)


def test_one_that_its_author_withdrew_leads_to_its_channel() -> None:
    ids = old_ids(2)
    channel_id = fresh_id()
    write_messages(channel_id, ids[:1])
    withdrawn.note_withdrawn(channel_id, ids[1], author_id=VICTOR)
    assert locate_message([fresh_id(), channel_id], ids[1], deadline_seconds=60).channel_id == channel_id


def test_that_somebody_claims_it_leads_nowhere() -> None:
    ids = old_ids(2)
    channel_id = fresh_id()
    write_messages(channel_id, ids[:1])
    withdrawn.note_claim(channel_id, ids[1], actor=VICTOR)
    assert locate_message([channel_id], ids[1], deadline_seconds=60).channel_id is None


def test_what_an_edit_left_of_a_removed_message_is_no_message() -> None:
    ids = old_ids(1)
    channel_id = fresh_id()
    write_authorless(channel_id, ids)
    assert locate_message([channel_id], ids[0], deadline_seconds=60) == Located(None, there_then=1, is_whole=True)


def test_a_dead_span_is_not_asked_though_its_withdrawn_are() -> None:
    ids = old_ids(2)
    channel_id = fresh_id()
    write_messages(channel_id, ids)
    withdrawn.note_withdrawn(channel_id, ids[1], author_id=VICTOR)
    ledger.set_live(channel_id, bucket_of(ids[0]), NOTHING, read_began_us=wall_clock_us() + 60_000_000)
    assert locate_message([channel_id], ids[0], deadline_seconds=60).channel_id is None
    assert locate_message([channel_id], ids[1], deadline_seconds=60).channel_id == channel_id


def test_the_deadline_ends_it_after_the_first_channels_and_says_so() -> None:
    ids = old_ids(1)
    first, last = fresh_id(), fresh_id()
    write_messages(first, ids)
    write_messages(last, ids)
    nobody = [fresh_id() for _ in range(CHANNELS_AT_ONCE)]
    assert locate_message([*nobody, last], ids[0], deadline_seconds=0) == Located(None, there_then=0, is_whole=False)
    assert locate_message([*nobody[1:], first], ids[0], deadline_seconds=0).channel_id == first
    assert locate_message(nobody, ids[0], deadline_seconds=0).is_whole


def test_no_channel_is_no_place() -> None:
    assert locate_message([], 7, deadline_seconds=1) == Located(None, there_then=0, is_whole=True)
