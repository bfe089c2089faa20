"""Ticks of time axes are at round times of the viewer's zone, far enough apart for their labels."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from moderation.domain.axis_times import round_times

pytestmark = pytest.mark.unit

BERLIN, KATHMANDU = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kathmandu")
MINUTE = dt.timedelta(minutes=1)


def ticks(start: str, end: str, zone: dt.tzinfo = BERLIN) -> list[str]:
    times = round_times(at(start, zone), at(end, zone), zone)
    return [f"{time.astimezone(zone):%Y-%m-%d %H:%M}" for time in times]


def at(text: str, zone: dt.tzinfo) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(dt.UTC)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2024-03-11T14:02", "2024-03-11T14:32", ["14:10", "14:20"]),
        ("2024-03-11T14:00", "2024-03-11T15:00", ["14:00", "14:15", "14:30", "14:45"]),
        ("2024-03-11T00:00", "2024-03-12T00:00", ["00:00", "06:00", "12:00", "18:00"]),
    ],
)
def test_within_a_day_they_are_at_full_hours_or_round_minutes(start: str, end: str, expected: list[str]) -> None:
    assert [time[11:] for time in ticks(start, end)] == expected


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2024-03-01T00:00", "2024-04-01T00:00", ["2024-03-01", "2024-03-11", "2024-03-21"]),
        ("2024-01-01T00:00", "2025-01-01T00:00", ["2024-01-01", "2024-04-01", "2024-07-01", "2024-10-01"]),
        ("2019-05-17T03:00", "2024-11-02T17:00", ["2020-01-01", "2022-01-01"]),
    ],
)
def test_beyond_a_day_they_are_at_midnights_of_round_days(start: str, end: str, expected: list[str]) -> None:
    found = ticks(start, end)
    assert [time[:10] for time in found] == expected
    assert {time[11:] for time in found} == {"00:00"}


def test_they_are_round_in_zones_off_by_minutes_and_where_clocks_are_put_forward() -> None:
    assert [time[14:] for time in ticks("2024-03-11T01:17", "2024-03-11T09:00", KATHMANDU)] == ["00"] * 3
    assert "2024-03-31 06:00" in ticks("2024-03-31T00:00", "2024-04-01T00:00")


def test_whatever_the_window_there_are_one_to_five_with_room_for_their_labels() -> None:
    start = at("2023-02-27T21:38", BERLIN)
    length = 30 * MINUTE
    while length < dt.timedelta(days=40_000):
        times = round_times(start, start + length, BERLIN)
        assert 1 <= len(times) <= 5, length
        assert all(start <= time < start + length for time in times)
        assert all(after - before >= length / 5 for before, after in pairwise(times)), length
        length = length * 1.13
