"""No timestamp is issued while the clocks of Postgres and this process differ, even right after a comparison."""

import pytest

from chatstore.domain.buckets import bucket_at
from chatstore.domain.errors import WriteRefused
from chatstore.domain.live import EMPTY
from chatstore.operations.coordination.channel_lock import lock_channel, release_channel
from chatstore.operations.coordination.clock import check_clock, wall_clock_us
from chatstore.operations.coordination.timestamps import issue_stamp, issue_stamps
from chatstore.operations.ledger.refresh import refresh_bucket, try_refresh_bucket
from chatstore.store import ledger
from tests.chatstore.channels import fresh_id, now_ms
from tests.clock_jumps import postgres_off

SECOND_US = 1_000_000


@pytest.fixture(autouse=True)
def _clocks_were_just_compared() -> None:
    check_clock()


@pytest.mark.parametrize("seconds", [20, 40, -120])
def test_a_timestamp_beyond_the_allowed_skew_is_refused_and_not_stored(seconds: int) -> None:
    channel_id = fresh_id()
    with postgres_off(seconds):
        direction = "behind" if seconds > 0 else "ahead of"
        with pytest.raises(WriteRefused, match=rf"The clock of process \d+ on .* {direction} Postgres's"):
            issue_stamp(channel_id, 7)
        with pytest.raises(WriteRefused):
            issue_stamps([(channel_id, 7), (channel_id, 8)])
    began = wall_clock_us()
    stamps = [issue_stamp(channel_id, 7), *issue_stamps([(channel_id, 7), (channel_id, 8)]).values()]
    assert all(began - SECOND_US < stamp < wall_clock_us() + SECOND_US for stamp in stamps)


def test_a_difference_within_the_allowed_skew_is_ignored() -> None:
    channel_id = fresh_id()
    with postgres_off(4):
        stamp = issue_stamp(channel_id, 7)
    assert stamp > wall_clock_us() + 2 * SECOND_US
    assert issue_stamp(channel_id, 7) == stamp + 1


def test_the_ledger_is_not_updated_while_the_clocks_disagree() -> None:
    channel_id, bucket = fresh_id(), bucket_at(now_ms()) - 2
    ledger.ensure_row(channel_id, bucket)
    with postgres_off(40):
        assert lock_channel(channel_id, job="test:1")
        with pytest.raises(WriteRefused):
            refresh_bucket(channel_id, bucket, job="test:1")
        release_channel(channel_id, job="test:1")
        with pytest.raises(WriteRefused):
            try_refresh_bucket(channel_id, bucket, job="test:1")
    live = ledger.read_live(channel_id, bucket)
    assert live is not None
    assert not live.is_known
    refreshed = try_refresh_bucket(channel_id, bucket, job="test:1")
    assert refreshed is not None
    assert refreshed.live == EMPTY
