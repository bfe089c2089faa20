"""A channel's state is one sentence, with the figures that it follows from."""

from chatstore.domain.buckets import bucket_days
from chatstore.domain.health import ChannelState, KnownChannel
from moderation.presentation import formats
from moderation.presentation.channel_states import LABELS, describe_state, explain_state

DAYS = formats.format_days(*bucket_days(350))


def test_a_healthy_channel_is_described_by_the_cost_of_its_newest_page() -> None:
    known = KnownChannel(tombstones=0, page_us=2_410, page_rows=51, page_tombstones=0)
    text = describe_state(ChannelState.HEALTHY, known)
    assert text == "Healthy. The newest page reads 51\u00a0rows and 0\u00a0tombstones in 2.4\u00a0ms."


def test_a_channel_whose_tombstones_were_never_counted_is_healthy_only_as_far_as_it_was_measured() -> None:
    known = KnownChannel(page_us=2_410, page_rows=51, page_tombstones=0)
    page = "The newest page reads 51\u00a0rows and 0\u00a0tombstones in 2.4\u00a0ms."
    text = describe_state(ChannelState.HEALTHY, known)
    assert text == f"Healthy so far. {page} Tombstones of its buckets were never counted."
    assert text.endswith(explain_state(ChannelState.HEALTHY, known))


def test_a_page_of_several_buckets_names_how_many() -> None:
    known = KnownChannel(tombstones=34, page_us=5_300, page_rows=51, page_tombstones=83, page_buckets=3)
    text = "The newest page reads 51\u00a0rows and 83\u00a0tombstones from 3\u00a0buckets in 5.3\u00a0ms."
    assert describe_state(ChannelState.HEALTHY, known) == f"Healthy. {text}"


def test_a_page_without_a_number_of_rows_is_described_without_it() -> None:
    known = KnownChannel(page_us=812_000, page_tombstones=1)
    page = "The newest page reads 1\u00a0tombstone in 812\u00a0ms."
    assert describe_state(ChannelState.SLOW, known) == f"Slow. {page} From 20\u00a0ms on, a page is slow."


def test_a_page_that_is_slow_by_its_tombstones_alone_names_no_limit_of_time() -> None:
    known = KnownChannel(page_us=4_000, page_rows=51, page_tombstones=1_204)
    page = "The newest page reads 51\u00a0rows and 1,204\u00a0tombstones in 4.0\u00a0ms."
    assert describe_state(ChannelState.SLOW, known) == f"Slow. {page}"


def test_a_channel_over_a_limit_names_the_bucket_before_the_page() -> None:
    known = KnownChannel(
        tombstones=61_204, tombstones_bucket=350, bytes=72_400_000, bytes_bucket=350, page_us=2_410, page_tombstones=0
    )
    assert describe_state(ChannelState.TOMBSTONES, known) == (
        f"Too many tombstones. A full read of {DAYS} scans 61,204 tombstones. "
        "The newest page reads 0\u00a0tombstones in 2.4\u00a0ms."
    )
    assert explain_state(ChannelState.HEAVY, known) == f"The partition of {DAYS} has 72.4\u00a0MB."


def test_a_channel_that_was_never_measured_is_unknown() -> None:
    assert describe_state(ChannelState.UNKNOWN, KnownChannel()) == "Unknown. The newest page was never measured."


def test_every_state_has_a_label() -> None:
    assert set(LABELS) == set(ChannelState)


def test_a_state_that_follows_from_a_finding_has_it_as_its_reason() -> None:
    known = KnownChannel(page_us=2_410, page_rows=51, page_tombstones=0)
    lost = "2 messages that should have been kept are missing after a purge."
    assert explain_state(ChannelState.MISSING_MESSAGES, known, lost) == lost
    assert describe_state(ChannelState.MISSING_MESSAGES, known, lost).startswith(f"Messages missing. {lost} The newest")
