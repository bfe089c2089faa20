"""A user's channels are drawn on the same time axis, so that they can be compared."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.buckets import bucket_window
from chatstore.domain.snowflakes import make_snowflake, unix_ms
from moderation.presentation.activity import HEIGHT, WIDTH, draw_activity, draw_posts

buckets = st.lists(st.integers(-400, 900), max_size=40)


def test_consecutive_buckets_are_one_bar() -> None:
    drawn = draw_activity({1: [14, 10, 11, 12], 2: [19]}, today=19)
    assert drawn is not None
    assert [(run.x, run.width) for run in drawn.strips[1]] == [(0, 216), (288, 72)]
    assert [(run.x, run.width) for run in drawn.strips[2]] == [(648, 72)]
    assert drawn.strips[1][0].first_day == drawn.first_day == bucket_window(10)[0].date()
    assert (drawn.strips[1][1].last_day - drawn.strips[1][1].first_day).days == 9


def test_nothing_is_drawn_before_the_account_was_created() -> None:
    created = bucket_window(10)[0].date() + dt.timedelta(days=6)
    drawn = draw_activity({1: [10], 2: [11]}, today=11, since=created)
    assert drawn is not None
    assert drawn.first_day == drawn.strips[1][0].first_day == created
    assert [(run.x, run.width) for run in (*drawn.strips[1], *drawn.strips[2])] == [(0, 205.7), (205.7, 514.3)]
    # An ID may say nothing of the time: what was posted is drawn whole.
    drawn = draw_activity({1: [10]}, today=11, since=created + dt.timedelta(days=30))
    assert drawn is not None
    assert drawn.first_day == bucket_window(10)[0].date()


def test_an_author_without_messages_has_no_strips() -> None:
    assert draw_activity({}, today=5) is None
    assert draw_activity({1: []}, today=5) is None


@given(st.dictionaries(st.integers(1, 9), buckets, max_size=5), st.integers(-400, 900))
def test_every_bar_is_inside_the_strip_and_visible(places: dict[int, list[int]], today: int) -> None:
    drawn = draw_activity(places, today=today)
    assert (drawn is None) == (not any(places.values()))
    if drawn is None:
        return
    for channel_id, spans in drawn.strips.items():
        assert spans[0].first_day >= drawn.first_day
        assert all(run.x >= 0 and run.x + run.width <= WIDTH + 0.2 and run.width >= 2 for run in spans), channel_id
        days = sum((run.last_day - run.first_day).days + 1 for run in spans)
        assert days == 10 * len(set(places[channel_id]))


NOW = dt.datetime(2026, 3, 11, 14, 2, tzinfo=dt.UTC)


def posted(*minutes_ago: float) -> list[int]:
    return sorted(make_snowflake(unix_ms(NOW - dt.timedelta(minutes=ago))) for ago in minutes_ago)


def test_a_burst_of_a_minute_is_one_bar_of_many_and_its_height_the_number_of_messages() -> None:
    drawn = draw_posts({1: posted(3, 3, 3, 3), 2: posted(20)}, now=NOW)
    assert drawn is not None
    assert drawn.first_at == NOW - dt.timedelta(minutes=30)
    assert drawn.top == 4
    (burst,), (single,) = drawn.strips[1], drawn.strips[2]
    assert [(bar.width < WIDTH / 30, bar.height) for bar in burst.bars] == [(True, HEIGHT)]
    assert [bar.height for bar in single.bars] == [3.8]
    assert (burst.at, burst.title) == ("2026-03-11T13:59Z", "11 Mar 2026, 13:59 to 14:00: 4 messages")


def test_slots_grow_with_the_time_and_neighbours_are_one_link() -> None:
    two_years = 2 * 365 * 24 * 60
    drawn = draw_posts({1: posted(two_years, 0)}, now=NOW)
    assert drawn is not None
    assert len(drawn.strips[1]) == 2
    drawn = draw_posts({1: posted(3, 2, 1)}, now=NOW)
    assert drawn is not None
    (span,) = drawn.strips[1]
    assert len(span.bars) == 3
    assert "3 messages" in span.title


@pytest.mark.parametrize("minutes", [7, 101, 26 * 60, 101 * 24 * 60, 120 * 24 * 60, 5 * 365 * 24 * 60])
def test_the_axis_begins_about_the_first_message_and_ends_now(minutes: int) -> None:
    drawn = draw_posts({1: posted(minutes, 0)}, now=NOW)
    assert drawn is not None
    first, last = drawn.strips[1][0], drawn.strips[1][-1]
    assert drawn.first_at is not None
    shown = NOW - drawn.first_at
    assert dt.timedelta(minutes=minutes) <= shown <= max(dt.timedelta(minutes=minutes) * 1.1, dt.timedelta(minutes=31))
    assert last.x + last.width == pytest.approx(WIDTH, abs=0.2)
    assert (first.x <= WIDTH / 20) == (minutes > 30)


def test_without_messages_nothing_is_drawn() -> None:
    assert draw_posts({}, now=NOW) is None
    assert draw_posts({1: []}, now=NOW) is None


@given(st.lists(st.floats(0, 10 * 365 * 24 * 60), min_size=1, max_size=60))
def test_every_message_is_in_a_bar_inside_the_strip(ago: list[float]) -> None:
    drawn = draw_posts({1: posted(*ago)}, now=NOW)
    assert drawn is not None
    numbers = [int(span.title.rpartition(": ")[2].split(" ")[0]) for span in drawn.strips[1]]
    assert sum(numbers) == len(ago)
    for span in drawn.strips[1]:
        assert all(bar.x >= span.x and bar.x + bar.width <= span.x + span.width + 3 for bar in span.bars)
        assert all(0 < bar.height <= HEIGHT for bar in span.bars)
        assert span.x + span.width <= WIDTH + 0.2
