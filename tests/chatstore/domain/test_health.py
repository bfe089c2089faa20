"""A bucket's state follows from its recorded values; a missing measurement never counts as 0."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.health import (
    SPARSE_BELOW,
    BucketState,
    ChannelState,
    KnownBucket,
    KnownChannel,
    Limits,
    dead_share,
    explain,
    is_slowed,
    severity_of,
    severity_of_channel,
    state_of,
    state_of_channel,
)
from chatstore.domain.live import EMPTY, UNKNOWN, Live
from chatstore.domain.runs import Severity

LIMITS = Limits(warn_tombstones=1_000, alarm_tombstones=50_000, warn_bytes=50_000_000, alarm_bytes=100_000_000)

lives = (
    st.none()
    | st.sampled_from([UNKNOWN, EMPTY, Live(-5, None, None)])
    | st.builds(Live, st.just(3), st.just(90), st.integers(1, 100_000))
)
known_numbers = st.none() | st.integers(0, 200_000_000)
known = st.builds(
    KnownBucket,
    live=lives,
    is_open=st.booleans(),
    may_be_unlisted=st.booleans(),
    live_rows=st.none() | st.integers(0, 100_000),
    tombstones=st.none() | st.integers(0, 200_000),
    bytes=st.none() | st.integers(0, 200_000_000),
)


@given(known)
def test_a_bucket_over_no_limit_is_never_called_bad_and_one_over_a_limit_always_is(one: KnownBucket) -> None:
    over = (one.tombstones or 0) >= LIMITS.warn_tombstones or (one.bytes or 0) >= LIMITS.warn_bytes
    assert (state_of(one, LIMITS) in (BucketState.TOMBSTONES, BucketState.HEAVY)) == over
    assert (severity_of(one, LIMITS) is not None) == over


@given(known)
def test_only_buckets_skipped_by_pages_are_empty(one: KnownBucket) -> None:
    if state_of(one, LIMITS) == BucketState.EMPTY:
        assert one.live is None or one.live.is_empty
        assert one.messages == 0


@given(known)
def test_a_sealed_bucket_is_unknown_exactly_when_its_live_count_is(one: KnownBucket) -> None:
    quiet = replace(one, is_open=False, tombstones=None, bytes=None)
    assert (state_of(quiet, LIMITS) == BucketState.UNKNOWN) == (quiet.messages is None)


@given(known)
def test_a_zero_figure_is_ignored_after_the_ledger_was_cleared(one: KnownBucket) -> None:
    cleared = replace(one, live=UNKNOWN, live_rows=0)
    assert cleared.messages is None


@given(known)
def test_every_state_has_a_reason(one: KnownBucket) -> None:
    assert explain(one, LIMITS).endswith(".")


def test_the_states_of_plain_buckets() -> None:
    full = Live(1, 9, SPARSE_BELOW)
    assert state_of(KnownBucket(full, live_rows=SPARSE_BELOW), LIMITS) == BucketState.LIVE
    assert state_of(KnownBucket(full, live_rows=SPARSE_BELOW - 1), LIMITS) == BucketState.SPARSE
    assert state_of(KnownBucket(None), LIMITS) == BucketState.EMPTY
    assert state_of(KnownBucket(None, may_be_unlisted=True), LIMITS) == BucketState.UNKNOWN
    assert state_of(KnownBucket(UNKNOWN), LIMITS) == BucketState.UNKNOWN
    assert state_of(KnownBucket(UNKNOWN, is_open=True), LIMITS) == BucketState.OPEN
    # A bucket without live messages may still be full of tombstones.
    assert state_of(KnownBucket(EMPTY, tombstones=60_000), LIMITS) == BucketState.TOMBSTONES


def test_the_alarm_threshold_is_half_of_the_failure_threshold() -> None:
    assert severity_of(KnownBucket(UNKNOWN, tombstones=49_999), LIMITS) == Severity.WARNING
    assert severity_of(KnownBucket(UNKNOWN, tombstones=50_000), LIMITS) == Severity.CRITICAL
    assert severity_of(KnownBucket(UNKNOWN, bytes=100_000_000), LIMITS) == Severity.CRITICAL


@pytest.mark.parametrize(
    ("live_rows", "tombstones", "share"),
    [(None, 5, None), (5, None, None), (0, 0, 0.0), (0, 7, 1.0), (300, 100, 0.25)],
)
def test_the_dead_share_is_known_only_when_both_of_its_parts_are(
    live_rows: int | None, tombstones: int | None, share: float | None
) -> None:
    assert dead_share(live_rows, tombstones) == share


def test_a_page_is_slowed_at_three_times_its_cost_and_never_below_20_ms() -> None:
    assert not is_slowed(19_000, 1_000)
    assert is_slowed(21_000, 7_000)
    assert not is_slowed(20_999, 7_000)


def test_the_state_of_a_channel_is_the_most_severe_that_applies() -> None:
    healthy = KnownChannel(tombstones=999, bytes=49_999_999, page_us=19_999, page_tombstones=999)
    for changes, state in (
        ({}, ChannelState.HEALTHY),
        ({"tombstones": None, "bytes": None}, ChannelState.HEALTHY),
        ({"page_us": None, "page_tombstones": None}, ChannelState.UNKNOWN),
        ({"page_us": 20_000}, ChannelState.SLOW),
        ({"page_tombstones": 1_000}, ChannelState.SLOW),
        ({"bytes": 50_000_000, "page_us": None}, ChannelState.HEAVY),
        ({"tombstones": 1_000, "bytes": 50_000_000}, ChannelState.TOMBSTONES),
    ):
        assert state_of_channel(replace(healthy, **changes), LIMITS) == state


@given(st.builds(KnownChannel, tombstones=known_numbers, bytes=known_numbers, page_us=known_numbers))
def test_a_channel_is_over_a_limit_exactly_if_a_finding_is_open(channel: KnownChannel) -> None:
    is_over = state_of_channel(channel, LIMITS) in (ChannelState.TOMBSTONES, ChannelState.HEAVY)
    assert is_over == (severity_of_channel(channel, LIMITS) is not None)


def test_the_share_of_empty_buckets_of_a_channel_without_buckets_is_unknown() -> None:
    assert KnownChannel(buckets=0, empty_buckets=0).empty_share is None
    assert KnownChannel().empty_share is None
    assert KnownChannel(buckets=8, empty_buckets=2).empty_share == 0.25
