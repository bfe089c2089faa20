"""A user's channels are drawn on the same time axis, so that they can be compared."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.buckets import bucket_window
from moderation.presentation.activity import WIDTH, draw_activity

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
