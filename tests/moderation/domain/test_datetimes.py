"""Parsing of dates that people type."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import time_of
from moderation.domain.datetimes import first_id_from, parse_datetime
from moderation.presentation import formats

NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2024-03-11", dt.datetime(2024, 3, 11, tzinfo=dt.UTC)),
        (" 2024-03-11T14:30 ", dt.datetime(2024, 3, 11, 14, 30, tzinfo=dt.UTC)),
        ("2024-03-11T14:30+02:00", dt.datetime(2024, 3, 11, 12, 30, tzinfo=dt.UTC)),
        ("1999-12-31", dt.datetime(1999, 12, 31, tzinfo=dt.UTC)),
        ("2026-05-01T12:00", NOW),
    ],
)
def test_a_date_is_in_the_zone_of_now_unless_it_names_one(typed: str, meant: dt.datetime) -> None:
    assert parse_datetime(typed, now=NOW) == meant
    assert time_of(first_id_from(meant)) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2024-03-11", dt.datetime(2024, 3, 10, 23, tzinfo=dt.UTC)),
        ("2024-07-11T14:30", dt.datetime(2024, 7, 11, 12, 30, tzinfo=dt.UTC)),
        ("2024-07-11T14:30+00:00", dt.datetime(2024, 7, 11, 14, 30, tzinfo=dt.UTC)),
        ("1 hour ago", NOW - dt.timedelta(hours=1)),
    ],
)
def test_a_date_follows_the_zone_of_now(typed: str, meant: dt.datetime) -> None:
    assert parse_datetime(typed, now=NOW.astimezone(ZoneInfo("Europe/Berlin"))) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("20 minutes ago", dt.timedelta(minutes=20)),
        (" 1 Minute ago", dt.timedelta(minutes=1)),
        ("90min", dt.timedelta(minutes=90)),
        ("2 h", dt.timedelta(hours=2)),
        ("1 hour", dt.timedelta(hours=1)),
        ("30 days ago", dt.timedelta(days=30)),
        ("0 d", dt.timedelta(0)),
        ("last 20 minutes", dt.timedelta(minutes=20)),
        ("30 seconds ago", dt.timedelta(seconds=30)),
        ("2 weeks ago", dt.timedelta(weeks=2)),
        ("just now", dt.timedelta(0)),
    ],
)
def test_how_long_ago_is_counted_from_now(typed: str, meant: dt.timedelta) -> None:
    assert parse_datetime(typed, now=NOW) == NOW - meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("11 March 2024", "2024-03-11"),
        ("11 mar 2024", "2024-03-11"),
        ("Monday, 11 March 2024", "2024-03-11"),
        ("11 March 2024, 14:30", "2024-03-11T14:30"),
        ("11 Mar 2024 at 9:05:07", "2024-03-11T09:05:07"),
        ("yesterday  14:30", "2026-04-30T14:30"),
        ("Yesterday", "2026-04-30"),
        ("today", "2026-05-01"),
        ("today at 9:00", "2026-05-01T09:00"),
        ("9:00", "2026-05-01T09:00"),
        ("23:59", "2026-04-30T23:59"),
        ("1 May", "2026-05-01"),
        ("2 May", "2025-05-02"),
    ],
)
def test_a_date_in_words_is_in_the_zone_of_now_and_lies_in_the_past(typed: str, meant: str) -> None:
    for zone in (ZoneInfo("Europe/Berlin"), dt.UTC):
        expected = dt.datetime.fromisoformat(meant).replace(tzinfo=zone)
        assert parse_datetime(typed, now=NOW.astimezone(zone)) == expected


def test_the_last_29_february_is_found_only_in_a_leap_year() -> None:
    leap = dt.datetime(2025, 2, 1, tzinfo=dt.UTC)
    assert parse_datetime("29 February", now=leap) == dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
    with pytest.raises(BadInput, match="not a valid date"):
        parse_datetime("29 February", now=NOW)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("11 Mar 2024, 15:02 (14:02 UTC)", dt.datetime(2024, 3, 11, 14, 2, tzinfo=dt.UTC)),
        ("1 Mar 2024, 00:30 (29 Feb 2024, 23:30 UTC)", dt.datetime(2024, 2, 29, 23, 30, tzinfo=dt.UTC)),
        ("27 Oct 2024, 02:30 (00:30 UTC)", dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC)),
        ("27 Oct 2024, 02:30 (01:30 UTC)", dt.datetime(2024, 10, 27, 1, 30, tzinfo=dt.UTC)),
        ("11 Mar 2024, 14:02 UTC", dt.datetime(2024, 3, 11, 14, 2, tzinfo=dt.UTC)),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Los_Angeles"])
def test_the_utc_time_beside_a_local_one_decides_in_every_zone(typed: str, meant: dt.datetime, zone: str) -> None:
    assert parse_datetime(typed, now=NOW.astimezone(ZoneInfo(zone))) == meant


def test_a_clock_that_was_set_back_means_the_last_time_that_it_showed() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    # 02:10 for the second time: 01:10 in UTC.
    now = dt.datetime(2024, 10, 27, 1, 10, tzinfo=dt.UTC).astimezone(berlin)
    assert parse_datetime("02:05", now=now) == dt.datetime(2024, 10, 27, 1, 5, tzinfo=dt.UTC)
    assert parse_datetime("02:30", now=now) == dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC)
    assert parse_datetime("03:00", now=now) == dt.datetime(2024, 10, 26, 1, 0, tzinfo=dt.UTC)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
def test_whatever_a_page_writes_can_be_typed(zone: str) -> None:
    time = dt.datetime(2024, 3, 10, 23, 2, 7, tzinfo=dt.UTC)
    with timezone.override(zone):
        now = timezone.localtime(NOW)
        day, minute = timezone.localtime(time).replace(hour=0, minute=0, second=0), time.replace(second=0)
        for written in (formats.format_day(time), formats.format_short_day(time)):
            assert parse_datetime(written, now=now) == day, written
        for written in (formats.format_datetime(time), formats.format_deadline(time)):
            assert parse_datetime(written, now=now) == minute, written
        assert parse_datetime(formats.format_exact(time), now=now) == time
        for amount in (dt.timedelta(seconds=2), dt.timedelta(minutes=3), dt.timedelta(hours=1), dt.timedelta(days=2)):
            parsed = parse_datetime(formats.format_ago(NOW - amount, NOW), now=now)
            assert parsed == NOW - amount or amount.total_seconds() < 5


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("2026-05-02", "future"),
        ("1944-01-01", "before the first possible message"),
        ("11.3.2024", "not a valid date"),
        ("", "not a valid date"),
        ("2024-02-30", "not a valid date"),
        ("20 m ago", "not a valid date"),
        ("-5 minutes ago", "not a valid date"),
        ("five minutes ago", "not a valid date"),
        ("last Tuesday", "not a valid date"),
        ("3/11/2024", "not a valid date"),
        ("UTC", "not a valid date"),
        ("14:30 (13:30 UTC)", "not a valid date"),
        ("11 Mar 2024, 14:30 (banana UTC)", "not a valid date"),
        ("11 Mar 2024, 14:30 (13:30)", "not a valid date"),
        ("30 February 2024", "not a valid date"),
        ("11 Smarch 2024", "not a valid date"),
        ("Tuesday, 11 March 2024", "not a valid date"),
        ("yesterday 24:30", "not a valid date"),
        ("today 14:30", "future"),
        ("11 March 2027", "future"),
        ("99999 days ago", "before the first possible message"),
        ("0001-01-01T00:00+12:00", "not a valid date"),
    ],
)
def test_an_unusable_date_is_refused_with_the_reason(typed: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_datetime(typed, now=NOW)
