"""A burst of messages is a raid only where it is unusual: the channel's last complete buckets say what is usual."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from chatstore.domain.buckets import BUCKET_MS, bucket_at, bucket_ids
from chatstore.domain.live import Live
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.models import Channel, Finding
from chatstore.operations.coordination.clock import postgres_now, postgres_now_us
from chatstore.store import ledger
from chatstore.store.activity import busy_channels
from moderation.operations.raids import reading
from moderation.operations.raids.detection import RAID, check_raids
from moderation.operations.raids.reading import usual_rate
from tests.moderation.channels import make_channel, now_ms
from tests.moderation.raids import Raid, forget_raids, write_raid
from tests.waiting import wait_until

MINUTES = BUCKET_MS // MINUTE_MS
"""Of a bucket."""


@pytest.fixture(autouse=True)
def _no_findings_are_left() -> Iterator[None]:
    yield
    forget_raids()


def count_messages(channel: Channel, per_minute: Mapping[int, int], *, at_ms: int) -> None:
    """Record in the ledger what the buckets of a channel contain, by how many buckets ago each is."""
    for ago, rate in per_minute.items():
        bucket = bucket_at(at_ms) - ago
        live = Live(*bucket_ids(bucket), rate * MINUTES)
        ledger.ensure_row(channel.pk, bucket)
        ledger.set_live(channel.pk, bucket, live, read_began_us=postgres_now_us())


def burst(*, usually: Mapping[int, int]) -> Raid:
    """Write the burst that all tests have, to a channel with a past."""
    raid = write_raid()
    count_messages(raid.channel, usually, at_ms=now_ms())
    wait_until(lambda: raid.channel.pk in busy_channels(20))
    return raid


def is_reported(raid: Raid) -> bool:
    return Finding.objects.open().filter(kind=RAID, subject=str(raid.channel.pk)).exists()


def test_the_same_burst_is_reported_in_a_quiet_channel_and_not_in_one_that_is_always_busy() -> None:
    quiet, busy = burst(usually={1: 1, 2: 1, 3: 1}), burst(usually={1: 500, 2: 500, 3: 500})
    new = burst(usually={})
    check_raids(postgres_now())
    assert is_reported(quiet)
    assert is_reported(new)
    assert not is_reported(busy)


def test_the_burst_itself_and_what_was_long_ago_do_not_make_a_channel_busy() -> None:
    raided, once_busy = burst(usually={0: 500}), burst(usually={1: 1, 2: 1, 3: 1, 4: 5_000})
    check_raids(postgres_now())
    assert is_reported(raided)
    assert is_reported(once_busy)


def test_the_usual_rate_is_the_mean_of_the_newest_buckets_before_the_current_one() -> None:
    channel, at_ms = make_channel(), now_ms()
    assert usual_rate(channel.pk, now_ms=at_ms) == 0
    count_messages(channel, {0: 900, 1: 30, 2: 40, 4: 80, 5: 700}, at_ms=at_ms)
    # Three buckets ago nothing was posted.
    assert usual_rate(channel.pk, now_ms=at_ms) == pytest.approx((30 + 40 + 80) / 3)


def test_a_usual_rate_is_known_for_a_while_before_it_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    channel, at_ms = make_channel(), now_ms()
    count_messages(channel, {1: 30}, at_ms=at_ms)
    assert usual_rate(channel.pk, now_ms=at_ms) == pytest.approx(30)
    count_messages(channel, {1: 60}, at_ms=at_ms)
    assert usual_rate(channel.pk, now_ms=at_ms) == pytest.approx(30)
    monkeypatch.setattr(reading, "USUAL_RATE_SECONDS", 0)
    assert usual_rate(channel.pk, now_ms=at_ms) == pytest.approx(60)
