"""A schedule is due once for each scheduled local time, whatever clock changes occur."""

import datetime as dt
import itertools
from collections import Counter
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatstore.domain.schedules import InvalidSchedule, Schedule

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "Africa/Casablanca")
"""Lord Howe changes by half an hour; Casablanca changes for Ramadan."""


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc, arg-type]


# One year of slots per example: enough to include every clock change of each zone.
@settings(max_examples=50)
@given(st.sampled_from(ZONES), st.integers(0, 23), st.integers(0, 59), st.integers(2015, 2036))
def test_a_nightly_schedule_runs_once_on_every_local_date(zone: str, hour: int, minute: int, year: int) -> None:
    nightly = Schedule(f"{minute} {hour} * * *", zone)
    slots = nightly.next_slots(utc(year, 1, 1), 366)
    dates = Counter(slot.wall.date() for slot in slots)
    first = min(dates)
    assert dates == Counter(first + dt.timedelta(days=number) for number in range(366))
    assert all(one.at < other.at for one, other in itertools.pairwise(slots))
    for slot in slots:
        shown = slot.at.astimezone(ZoneInfo(zone))
        # A local time skipped by a clock change is due when the clock continues.
        assert shown.replace(tzinfo=None) >= slot.wall
        assert shown.replace(tzinfo=None) - slot.wall <= dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("zone", "around", "at"),
    [
        ("Europe/Berlin", utc(2026, 3, 28, 12), utc(2026, 3, 29, 1, 0)),
        ("Europe/Berlin", utc(2026, 10, 24, 12), utc(2026, 10, 25, 0, 30)),
        ("America/New_York", utc(2026, 3, 7, 12), utc(2026, 3, 8, 7, 0)),
        ("America/New_York", utc(2026, 10, 31, 12), utc(2026, 11, 1, 7, 30)),
    ],
)
def test_half_past_two_on_the_nights_on_which_the_clock_changes(
    zone: str, around: dt.datetime, at: dt.datetime
) -> None:
    (slot,) = Schedule("30 2 * * *", zone).next_slots(around, 1)
    assert slot.at == at


def test_a_repeated_local_time_is_due_the_first_time() -> None:
    nightly = Schedule("30 1 * * *", "America/New_York")
    (slot,) = nightly.next_slots(utc(2026, 10, 31, 12), 1)
    assert (slot.key, slot.at) == ("2026-11-01T01:30", utc(2026, 11, 1, 5, 30))
    # Between the two occurrences the next one is tomorrow's.
    assert nightly.next_slots(utc(2026, 11, 1, 6, 0), 1)[0].key == "2026-11-02T01:30"
    assert nightly.last_slot(utc(2026, 11, 1, 6, 45), since=utc(2026, 11, 1)) == slot


def test_the_last_slot_is_the_newest_due_one() -> None:
    hourly = Schedule("5 * * * *", "UTC")
    assert (
        hourly.last_slot(utc(2026, 1, 1, 3, 30), since=utc(2026, 1, 1)) == hourly.next_slots(utc(2026, 1, 1, 3), 1)[0]
    )
    assert hourly.last_slot(utc(2026, 1, 1, 3, 4), since=utc(2026, 1, 1, 2, 5)) is None


@pytest.mark.parametrize(
    ("opens", "closes", "hour", "is_open"),
    [(1, 5, 0, False), (1, 5, 1, True), (1, 5, 5, False), (22, 5, 23, True), (22, 5, 4, True), (22, 5, 12, False)],
)
def test_allowed_hours_are_local_and_may_pass_midnight(opens: int, closes: int, hour: int, is_open: bool) -> None:
    nightly = Schedule("0 2 * * *", "Asia/Tokyo", dt.time(opens), dt.time(closes))
    time = dt.datetime(2026, 5, 1, hour, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert nightly.is_open(time.astimezone(dt.UTC)) is is_open


@pytest.mark.parametrize(
    ("cron", "zone", "hours", "message", "fields"),
    [
        ("30 2 * *", "UTC", (None, None), "five fields", ("cron",)),
        ("30 25 * * *", "UTC", (None, None), "hours are 0–23", ("cron",)),
        ("0 0 30 2 *", "UTC", (None, None), "is not a valid schedule|never occurs", ("cron",)),
        ("* * * * *", "Mars/Olympus", (None, None), "Unknown time zone", ("zone",)),
        ("* * * * *", "../etc/passwd", (None, None), "Unknown time zone", ("zone",)),
        ("* * * * *", "UTC", (dt.time(1), None), "both ends", ("closes",)),
        ("* * * * *", "UTC", (None, dt.time(1)), "both ends", ("opens",)),
        ("* * * * *", "UTC", (dt.time(1), dt.time(1)), "begin and end at the same time", ("opens", "closes")),
    ],
)
def test_an_invalid_schedule_is_refused_and_names_its_fields(
    cron: str, zone: str, hours: tuple[dt.time | None, dt.time | None], message: str, fields: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidSchedule, match=message) as refused:
        Schedule(cron, zone, *hours)
    assert refused.value.fields == fields


@pytest.mark.parametrize(
    ("cron", "description"),
    [
        ("30 2 * * *", "at 02:30 every day"),
        ("30 2,14 * * *", "at 02:30 and 14:30 every day"),
        ("30 2,8,14 * * *", "at 02:30, 08:30 and 14:30 every day"),
        ("15 4 * * 1-5", "at 04:15 on Monday through Friday"),
        ("15 4 * * SUN,7,3", "at 04:15 on Sunday, Sunday, Wednesday"),
        ("0 5 1 * *", "at 05:00 on the first day of every month"),
        ("0 5 1,15 * *", "at 05:00 on these days of every month: 1, 15"),
        ("*/10 * * * *", "every 10 minutes"),
        ("5 * * * *", "5 minutes past every hour"),
        ("0 5 * * MON#1", "by the cron expression 0 5 * * MON#1"),
        ("0 5 * 6 *", "by the cron expression 0 5 * 6 *"),
    ],
)
def test_a_schedule_is_described(cron: str, description: str) -> None:
    assert Schedule(cron, "UTC").description == description
