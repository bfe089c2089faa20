"""The bucket strip: every bucket has a bar, and unknown counts are not drawn as empty."""

import datetime as dt
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.buckets import bucket_window
from moderation.presentation.strip import BESIDE_CHANNELS, HEIGHT, NARROW, Label, StripBucket, draw_strip

numbers = st.integers(0, 2_000_000)
entries = st.dictionaries(
    st.integers(-2_500, 2_500), st.tuples(st.none() | numbers, numbers, st.booleans()), min_size=1, max_size=60
)


def make(given_entries: dict[int, tuple[int | None, int, bool]]) -> list[StripBucket]:
    return [
        StripBucket(bucket, count, highlighted=min(highlighted, count or 0), is_deleted=is_deleted)
        for bucket, (count, highlighted, is_deleted) in given_entries.items()
    ]


@given(entries)
def test_each_bucket_has_one_bar_in_order(
    given_entries: dict[int, tuple[int | None, int, bool]],
) -> None:
    strip = draw_strip(make(given_entries))
    drawn = [bar.bucket for bar in strip.bars]
    assert drawn == sorted(set(drawn))
    assert set(given_entries) <= set(drawn)
    assert all(left.x + left.slot <= right.x for left, right in zip(strip.bars, strip.bars[1:], strict=False))
    assert all(0 <= bar.x <= strip.width - bar.width for bar in strip.bars)


@given(st.integers(24, 165), st.sampled_from((NARROW, BESIDE_CHANNELS)))
def test_a_life_of_eight_months_or_more_fills_the_width(buckets: int, width: int) -> None:
    strip = draw_strip([StripBucket(number, 5) for number in range(buckets)], width=width)
    assert width - 11 < strip.width <= max(width, 7 * buckets)
    assert strip.fills_width


@given(st.integers(1, 23))
def test_a_shorter_life_is_not_stretched_to_the_width_of_its_card(buckets: int) -> None:
    assert not draw_strip([StripBucket(number, 5) for number in range(buckets)]).fills_width


def test_the_top_of_the_axis_is_the_tallest_count() -> None:
    assert draw_strip([StripBucket(1, 2), StripBucket(2, 50_000)]).top == 50_000
    # A few messages are not drawn as tall as many.
    assert draw_strip([StripBucket(1, 2), StripBucket(2, None)]).top == 10
    assert draw_strip([StripBucket(1, None)]).top is None


@given(entries)
def test_bars_fit_the_chart_and_contain_the_deleted_share(
    given_entries: dict[int, tuple[int | None, int, bool]],
) -> None:
    for bar in draw_strip(make(given_entries)).bars:
        assert 0 < bar.height <= HEIGHT + 0.1
        assert abs(bar.y + bar.height - HEIGHT) < 0.2
        assert 0 <= bar.highlighted_height <= bar.height
        assert (bar.highlighted_height > 0) == (bar.highlighted > 0)
        has_kept = bar.count is not None and bar.count > bar.highlighted > 0
        assert not has_kept or bar.kept_height > 0


def test_heights_are_in_proportion_and_the_smallest_is_visible() -> None:
    few, half, most = draw_strip([StripBucket(1, 2), StripBucket(2, 50_000, 25_000), StripBucket(3, 100_000)]).bars
    assert most.height == HEIGHT
    assert half.height == pytest.approx(HEIGHT / 2, abs=2)
    assert half.highlighted_height == pytest.approx(half.height / 2, abs=0.1)
    assert few.height >= 3


@given(entries)
def test_the_table_adds_up_to_what_was_given(given_entries: dict[int, tuple[int | None, int, bool]]) -> None:
    strip = draw_strip(make(given_entries))
    assert strip.total == sum(count or 0 for count, _, _ in given_entries.values())
    assert strip.has_uncounted == any(count is None for count, _, _ in given_entries.values())


def test_an_uncounted_bucket_is_not_drawn_as_empty() -> None:
    empty, uncounted, one = draw_strip([StripBucket(1, 0), StripBucket(2, None), StripBucket(3, 1)]).bars
    assert (empty.kind, uncounted.kind, one.kind) == ("empty", "uncounted", "live")
    assert uncounted.height > empty.height
    assert "not counted yet" in uncounted.title


def test_a_long_gap_is_a_break_and_not_a_thousand_bars() -> None:
    strip = draw_strip([StripBucket(-200, 5), StripBucket(420, 5)])
    assert [bar.bucket for bar in strip.bars] == [-200, 420]
    assert len(strip.breaks) == 1


def test_a_bar_links_to_the_first_day_of_its_bucket() -> None:
    (bar,) = draw_strip([StripBucket(335, 7)]).bars
    start, _ = bucket_window(335)
    assert dt.datetime.fromisoformat(bar.at) == start
    assert (start.hour, start.minute) == (0, 0)
    assert bar.title == "4–13\u00a0March\u00a02024: 7 messages"


def test_a_deleted_bucket_is_drawn_empty() -> None:
    (bar,) = draw_strip([StripBucket(335, 1204, highlighted=1204, is_deleted=True)]).bars
    assert bar.kind == "deleted"
    assert bar.highlighted_height == bar.height
    assert bar.remaining == 0


def test_what_is_restored_is_a_part_of_its_own_above_what_is_kept() -> None:
    strip = draw_strip([StripBucket(335, 100, highlighted=50, is_deleted=True, restored=30)])
    (bar,) = strip.bars
    assert bar.y < bar.restored_y < bar.kept_y < bar.kept_y + bar.kept_height
    assert bar.restored_height == pytest.approx(bar.height * 0.3, abs=0.2)
    assert (bar.remaining, strip.has_restored) == (20, True)
    assert bar.title == "4–13\u00a0March\u00a02024: 100 messages, 50 deleted, 30 restored"


def test_what_failed_is_a_part_of_its_own_below_what_was_restored() -> None:
    strip = draw_strip([StripBucket(335, 100, highlighted=40, is_deleted=True, restored=20, failed=30)])
    (bar,) = strip.bars
    assert bar.y < bar.restored_y < bar.failed_y < bar.kept_y < bar.kept_y + bar.kept_height
    assert bar.failed_height == pytest.approx(bar.height * 0.3, abs=0.2)
    assert (bar.remaining, strip.has_failed) == (10, True)
    assert bar.title == "4–13\u00a0March\u00a02024: 100 messages, 40 deleted, 20 restored, 30 failed"


def test_without_buckets_there_is_no_strip() -> None:
    assert draw_strip([]).bars == ()


@given(entries)
def test_it_tells_what_is_still_to_be_deleted_from_what_was(
    given_entries: dict[int, tuple[int | None, int, bool]],
) -> None:
    buckets = make(given_entries)
    strip = draw_strip(buckets)
    included = [bucket for bucket in buckets if bucket.highlighted]
    assert strip.has_deleted == any(bucket.is_deleted for bucket in included)
    assert strip.has_to_delete == any(not bucket.is_deleted for bucket in included)
    assert strip.is_purge == (strip.has_deleted or strip.has_to_delete)


def test_the_last_date_ends_with_the_strip() -> None:
    # Its last bars end in October.
    strip = draw_strip([StripBucket(bucket, 1) for bucket in range(375, 433)])
    last = strip.labels[-1]
    assert last.text == "Oct 2026"
    assert strip.width - last.x == pytest.approx(62)


def test_a_month_is_at_the_bar_of_its_first_day() -> None:
    strip = draw_strip([StripBucket(bucket, 1) for bucket in range(400, 436)])
    october = next(bar for bar in strip.bars if bar.first_day <= dt.date(2026, 10, 1) <= bar.last_day)
    assert october.first_day.month == 9
    assert Label(october.x, "Oct 2026") in strip.labels


def test_a_short_beginning_takes_no_room_from_the_date_of_the_first_whole_quarter() -> None:
    # Its first five bars end in November and December.
    buckets = [StripBucket(bucket, 1) for bucket in range(360, 433)]
    assert [label.text for label in draw_strip(buckets).labels[:3]] == ["Jan 2025", "Apr 2025", "Jul 2025"]
    # With more room, both have a date.
    wide = draw_strip(buckets, width=BESIDE_CHANNELS).labels[:3]
    assert [label.text for label in wide] == ["Nov 2024", "Jan 2025", "Apr 2025"]
    # Before a break, it keeps its date.
    broken = draw_strip([StripBucket(0, 1), *buckets]).labels[:2]
    assert [label.text for label in broken] == ["Jan 2015", "Jan 2025"]


@given(entries)
def test_dates_do_not_touch_each_other(given_entries: dict[int, tuple[int | None, int, bool]]) -> None:
    labels = draw_strip(make(given_entries)).labels
    assert all(right.x - left.x >= 60 for left, right in pairwise(labels))


def test_the_main_bar_is_the_newest_tall_one_of_those_with_many_messages_of_a_purge() -> None:
    spread = [StripBucket(number, 5, highlighted=5) for number in range(30)]
    spread[3] = StripBucket(3, 6, highlighted=6)
    assert draw_strip(spread).main_bar == draw_strip(spread).bars[-1]
    spread[7] = StripBucket(7, 900, highlighted=3)
    spread[9] = StripBucket(9, 2_000, highlighted=1)
    main = draw_strip(spread).main_bar
    assert main is not None
    assert main.bucket == 7
    assert draw_strip([StripBucket(1, 50)]).main_bar is None
