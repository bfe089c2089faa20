"""The ledger records the result of one read of a whole bucket, made by the job that locked the channel."""

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import WriteRefused
from chatstore.domain.live import NOTHING, UNKNOWN, Live
from chatstore.domain.snowflakes import first_id_at
from chatstore.operations.coordination.channel_lock import hold_channel
from chatstore.operations.ledger.refresh import settle_bucket, settle_channel
from chatstore.store import figures, ledger
from chatstore.store.reading.reader import read_page
from tests.chatstore.arranging import (
    DAY_MS,
    HOUR_MS,
    fresh_id,
    ids_of,
    now_ms,
    spread_ids,
    write_authorless,
    write_messages,
)

JOB = "bookkeeping"


def held_channel() -> int:
    channel_id = fresh_id()
    assert hold_channel(channel_id, job=JOB)
    return channel_id


def test_a_sealed_bucket_is_known_in_full() -> None:
    channel_id = held_channel()
    ids = spread_ids(20, newest_ms=now_ms() - 100 * DAY_MS)
    bucket = bucket_of(ids[0])
    ids = [one for one in ids if bucket_of(one) == bucket]
    write_messages(channel_id, ids)
    assert settle_bucket(channel_id, bucket) == Live(ids[-1], ids[0], len(ids))
    assert ledger.read_live(channel_id, bucket) == Live(ids[-1], ids[0], len(ids))
    assert figures.read_figures(channel_id)[bucket]["live_rows"].value == len(ids)
    assert ids_of(read_page(channel_id).messages) == ids


def test_a_sealed_bucket_in_which_nothing_lives_is_not_asked_again() -> None:
    channel_id = held_channel()
    ledger.ensure_row(channel_id, 300)
    assert settle_bucket(channel_id, 300) == NOTHING
    assert ledger.read_live(channel_id, 300) == NOTHING
    assert figures.read_figures(channel_id)[300]["live_rows"].value == 0


def test_an_open_bucket_carries_only_from_and_at_most_an_hour_ago() -> None:
    channel_id = held_channel()
    now = now_ms()
    fresh = first_id_at(now)
    write_messages(channel_id, [fresh])
    live = settle_bucket(channel_id, bucket_of(fresh))
    assert live.first is not None
    assert abs(live.first - first_id_at(now - HOUR_MS)) < first_id_at(now + 60_000) - first_id_at(now)
    assert (live.last, live.count) == (None, None)
    assert ids_of(read_page(channel_id).messages) == [fresh]


def test_an_open_bucket_with_an_older_message_begins_there() -> None:
    channel_id = held_channel()
    now = now_ms()
    old = first_id_at(now - 3 * HOUR_MS)
    write_messages(channel_id, [old])
    if bucket_of(old) == bucket_of(first_id_at(now)):
        assert settle_bucket(channel_id, bucket_of(old)) == Live(old, None, None)
    else:
        # If the bucket changed within these three hours, it is sealed and recorded completely.
        assert settle_bucket(channel_id, bucket_of(old)) == Live(old, old, 1)


def test_a_row_without_an_author_stays_in_sight_of_maintenance() -> None:
    channel_id = held_channel()
    (old,) = spread_ids(1, newest_ms=now_ms() - 100 * DAY_MS)
    write_authorless(channel_id, [old])
    assert settle_bucket(channel_id, bucket_of(old)) == Live(old, old, 1)
    assert figures.read_figures(channel_id)[bucket_of(old)]["live_rows"].value == 0
    assert read_page(channel_id).hidden == 1


def test_a_clear_after_the_read_began_wins_over_what_it_saw() -> None:
    channel_id = held_channel()
    ledger.ensure_row(channel_id, 300)
    ledger.clear_live(channel_id, 300)
    # The set has a timestamp ten seconds before the start of its read, so it is older than the clear.
    settle_bucket(channel_id, 300)
    assert ledger.read_live(channel_id, 300) == UNKNOWN


def test_nobody_settles_a_channel_that_their_job_does_not_hold() -> None:
    channel_id = fresh_id()
    ledger.ensure_row(channel_id, 300)
    with pytest.raises(WriteRefused, match="is not locked"):
        settle_bucket(channel_id, 300)
    hold_channel(channel_id, job="purge 1")
    with pytest.raises(WriteRefused, match="is not locked"):
        settle_channel(channel_id, job=JOB)
    assert ledger.read_live(channel_id, 300) == UNKNOWN


def test_settling_a_channel_leaves_what_is_known_alone() -> None:
    channel_id = held_channel()
    for bucket in (100, 200, 300):
        ledger.ensure_row(channel_id, bucket)
    assert settle_channel(channel_id, job=JOB) == 3
    assert settle_channel(channel_id, job=JOB) == 0
    assert {live for _, live in ledger.read_ledger(channel_id)} == {NOTHING}
