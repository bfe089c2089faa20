"""Windows of time, their slots, and numbers in each slot."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moderation.domain.zoom import (
    DAY,
    HOUR,
    MAX_SLOTS,
    MINUTE,
    Zoom,
    closer,
    count_in_slots,
    spread_evenly,
    window_at,
    window_of_all,
)

BERLIN = ZoneInfo("Europe/Berlin")
NOON = dt.datetime(2026, 3, 11, 12, 7, 30, tzinfo=dt.UTC)

times = st.integers(1_300_000_000, 2_200_000_000).map(lambda seconds: dt.datetime.fromtimestamp(seconds, dt.UTC))


@given(first=times, last=times)
def test_the_window_of_all_contains_both_ends_in_a_hundred_slots(first: dt.datetime, last: dt.datetime) -> None:
    first, last = sorted((first, last))
    window = window_of_all(first, last)
    assert window.start <= first <= last < window.end
    assert 1 < len(window.edges) - 1 <= MAX_SLOTS


def test_a_raid_of_five_minutes_has_a_bar_for_each_minute() -> None:
    window = window_of_all(NOON, NOON + 5 * MINUTE)
    assert window.slot == MINUTE
    assert window.end - window.start == 30 * MINUTE


@pytest.mark.parametrize(
    ("zoom", "start", "length", "slots"),
    [
        (Zoom.HOUR, "2026-03-11T13:00+01:00", HOUR, 60),
        (Zoom.DAY, "2026-03-11T00:00+01:00", DAY, 96),
        # Clocks are put forward on 29 March.
        (Zoom.MONTH, "2026-03-01T00:00+01:00", 31 * DAY - HOUR, 93),
        (Zoom.YEAR, "2026-01-01T00:00+01:00", 365 * DAY, 73),
    ],
)
def test_a_window_is_the_calendar_unit_of_the_viewer(zoom: Zoom, start: str, length: dt.timedelta, slots: int) -> None:
    window = window_at(zoom, NOON.astimezone(BERLIN))
    assert window.start == dt.datetime.fromisoformat(start)
    assert window.end - window.start == length
    assert len(window.edges) - 1 == slots


def test_each_level_leads_to_the_next_closer_one() -> None:
    everything = window_of_all(NOON - 1_000 * DAY, NOON)
    assert closer(Zoom.ALL, everything) is Zoom.YEAR
    assert closer(Zoom.ALL, window_of_all(NOON, NOON + 2 * DAY)) is Zoom.DAY
    for zoom, closer_one in ((Zoom.YEAR, Zoom.MONTH), (Zoom.MONTH, Zoom.DAY), (Zoom.DAY, Zoom.HOUR)):
        assert closer(zoom, window_at(zoom, NOON)) is closer_one
    assert closer(Zoom.HOUR, window_at(Zoom.HOUR, NOON)) is Zoom.HOUR


@given(st.lists(st.integers(0, 99), unique=True), st.lists(st.integers(0, 100), min_size=2, unique=True))
def test_numbers_are_counted_where_they_are(numbers: list[int], edges: list[int]) -> None:
    edges.sort()
    expected = [sum(start <= n < end for n in numbers) for start, end in pairwise(edges)]
    assert count_in_slots(sorted(numbers), edges) == expected


@given(st.integers(1, 1_000), st.integers(0, 50), st.integers(0, 50))
def test_an_estimate_adds_up_to_the_count(count: int, first: int, length: int) -> None:
    assert sum(spread_evenly(count, first, first + length, [0, 10, 37, 101])) == count
