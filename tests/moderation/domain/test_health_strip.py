"""The health strip draws each bucket once, in the color of its state, with a text label."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.health import BucketState, KnownBucket
from chatstore.domain.live import EMPTY, UNKNOWN, Live
from moderation.presentation.health_strip import BucketEntry, describe_entry, describe_legend, draw_health
from moderation.presentation.strip import HEIGHT

entries = st.builds(
    BucketEntry,
    bucket=st.integers(-3_000, 3_000),
    known=st.builds(
        KnownBucket,
        live=st.sampled_from([None, UNKNOWN, EMPTY, Live(1, 9, 7)]),
        live_rows=st.none() | st.integers(0, 10**7),
        tombstones=st.none() | st.integers(0, 10**7),
        bytes=st.none() | st.integers(0, 10**9),
    ),
    state=st.sampled_from(list(BucketState)),
    was_written=st.booleans(),
).filter(lambda entry: entry.was_written or (entry.known.live is None and entry.known.is_skipped))


@given(st.lists(entries, max_size=40, unique_by=lambda entry: entry.bucket))
def test_every_bucket_is_a_bar_in_its_state_s_colour_inside_the_chart(found: list[BucketEntry]) -> None:
    bars = {bar.bucket: bar for bar in draw_health(found).bars}
    for entry in found:
        bar = bars[entry.bucket]
        assert bar.kind == entry.kind
        assert entry.state == BucketState.EMPTY or bar.kind == entry.state.value
        assert 0 <= bar.y <= HEIGHT
        assert 0 <= bar.highlighted_height <= bar.height <= HEIGHT


@given(st.lists(entries, max_size=40, unique_by=lambda entry: entry.bucket))
def test_the_legend_counts_each_bucket_as_it_is_drawn(found: list[BucketEntry]) -> None:
    buckets = {entry.bucket for entry in found}
    drawn = Counter(bar.kind for bar in draw_health(found).bars if bar.bucket in buckets)
    assert {entry.kind: entry.count for entry in describe_legend(found)} == drawn


def test_empty_buckets_with_tombstones_and_those_never_written_are_kinds_of_their_own() -> None:
    found = [
        BucketEntry(1, KnownBucket(EMPTY, tombstones=0), BucketState.EMPTY),
        BucketEntry(2, KnownBucket(EMPTY, tombstones=7), BucketState.EMPTY),
        BucketEntry(3, KnownBucket(None), BucketState.EMPTY, was_written=False),
    ]
    legend = [(entry.count, str(entry.label)) for entry in describe_legend(found)]
    assert legend == [(1, "empty"), (1, "empty, with tombstones"), (1, "never written")]
    empty, emptied, unwritten = draw_health(found).bars
    assert (empty.highlighted_height, unwritten.highlighted_height) == (0, 0)
    assert emptied.highlighted_height == emptied.height


@given(entries)
def test_unknown_values_are_marked_and_never_shown_as_0(entry: BucketEntry) -> None:
    label = describe_entry(entry)
    if entry.known.messages is None:
        assert "unknown number of messages" in label
    if entry.known.tombstones is None:
        assert "unknown number of tombstones" in label or "never written" in label


def test_the_bar_of_a_dead_bucket_shows_the_tombstones_a_read_scans() -> None:
    dead = BucketEntry(-7, KnownBucket(EMPTY, tombstones=5_000), BucketState.TOMBSTONES)
    live = BucketEntry(-6, KnownBucket(Live(1, 9, 5_000), live_rows=5_000, tombstones=0), BucketState.LIVE)
    bars = {bar.bucket: bar for bar in draw_health([dead, live]).bars}
    assert bars[-7].height == bars[-6].height
    assert bars[-7].highlighted_height == bars[-7].height
    assert bars[-6].highlighted_height == 0
    assert bars[-7].title.endswith("too many tombstones, 0 messages, 5,000 tombstones, unknown size")


def test_the_bucket_of_the_page_is_marked() -> None:
    strip = draw_health([BucketEntry(n, KnownBucket(UNKNOWN), BucketState.UNKNOWN) for n in (1, 2, 3)], here=2)
    assert [bar.bucket for bar in strip.bars if bar.here] == [2]
