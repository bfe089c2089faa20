"""The health strip draws each bucket once, in the colour of its state, with a text label."""

from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.health import BucketState, Known
from chatstore.domain.live import NOTHING, UNKNOWN, Live
from moderation.presentation.health_strip import Entry, draw_health, say_entry
from moderation.presentation.strip import HEIGHT

entries = st.builds(
    Entry,
    bucket=st.integers(-3_000, 3_000),
    known=st.builds(
        Known,
        live=st.sampled_from([None, UNKNOWN, NOTHING, Live(1, 9, 7)]),
        live_rows=st.none() | st.integers(0, 10**7),
        tombstones=st.none() | st.integers(0, 10**7),
        bytes=st.none() | st.integers(0, 10**9),
    ),
    state=st.sampled_from(list(BucketState)),
)


@given(st.lists(entries, max_size=40, unique_by=lambda entry: entry.bucket))
def test_every_bucket_is_a_bar_in_its_states_colour_and_inside_the_field(found: list[Entry]) -> None:
    bars = {bar.bucket: bar for bar in draw_health(found).bars}
    for entry in found:
        bar = bars[entry.bucket]
        assert bar.kind == entry.state.value
        assert 0 <= bar.y <= HEIGHT
        assert 0 <= bar.red_height <= bar.height <= HEIGHT


@given(entries)
def test_what_is_not_known_is_said_and_never_shown_as_0(entry: Entry) -> None:
    words = say_entry(entry)
    if entry.known.messages is None:
        assert "unknown number of messages" in words
    if entry.known.tombstones is None:
        assert "unknown number of tombstones" in words or "never written" in words


def test_the_bar_of_a_dead_bucket_is_as_high_as_what_a_read_steps_through() -> None:
    dead = Entry(-7, Known(NOTHING, tombstones=5_000), BucketState.TOMBSTONES)
    live = Entry(-6, Known(Live(1, 9, 5_000), live_rows=5_000, tombstones=0), BucketState.LIVE)
    bars = {bar.bucket: bar for bar in draw_health([dead, live]).bars}
    assert bars[-7].height == bars[-6].height
    assert bars[-7].red_height == bars[-7].height
    assert bars[-6].red_height == 0
    assert bars[-7].title.endswith("too many tombstones, 0 messages, 5,000 tombstones, unknown size")


def test_the_bucket_of_the_page_is_marked() -> None:
    strip = draw_health([Entry(n, Known(UNKNOWN), BucketState.UNKNOWN) for n in (1, 2, 3)], here=2)
    assert [bar.bucket for bar in strip.bars if bar.here] == [2]
