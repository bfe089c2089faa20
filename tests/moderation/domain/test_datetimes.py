"""Parsing of dates that people type."""

import datetime as dt
import re
from zoneinfo import ZoneInfo

import pytest

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import time_of
from moderation.domain.datetimes import MAX_CHARACTERS, first_id_from, parse_bound, parse_datetime

NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
BERLIN = ZoneInfo("Europe/Berlin")


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
        ("20m", dt.timedelta(minutes=20)),
        ("20 m ago", dt.timedelta(minutes=20)),
        ("an hour ago", dt.timedelta(hours=1)),
        ("half an hour ago", dt.timedelta(minutes=30)),
        ("last hour", dt.timedelta(hours=1)),
        ("past week", dt.timedelta(weeks=1)),
        ("29 min 58 s", dt.timedelta(minutes=29, seconds=58)),
        ("1 day 4 h", dt.timedelta(days=1, hours=4)),
        ("2h30m", dt.timedelta(hours=2, minutes=30)),
        ("2 days and 3 hours ago", dt.timedelta(days=2, hours=3)),
        ("1.5 hours ago", dt.timedelta(minutes=90)),
        ("two hours ago", dt.timedelta(hours=2)),
        ("the last 20 minutes", dt.timedelta(minutes=20)),
        ("in the last hour", dt.timedelta(hours=1)),
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
        ("May 1", "2026-05-01"),
        ("March 11, 2024", "2024-03-11"),
        ("Mar 11th, 2024, 2:30 PM", "2024-03-11T14:30"),
        ("11. March 2024", "2024-03-11"),
        ("11.3.2024 14:30", "2024-03-11T14:30"),
        ("2024/03/11", "2024-03-11"),
        ("13/3/2024", "2024-03-13"),
        ("3/13/2024", "2024-03-13"),
        ("last Tuesday", "2026-04-28"),
        ("Friday 9 am", "2026-05-01T09:00"),
        ("last Friday", "2026-04-24"),
        ("12 am", "2026-05-01"),
        ("since 11 March 2024, 14:30", "2024-03-11T14:30"),
        ("March 2024", "2024-03-01"),
        ("2 May", "2025-05-02"),
        ("14:30 yesterday", "2026-04-30T14:30"),
        ("2:30 pm, yesterday", "2026-04-30T14:30"),
        ("9 am on Friday", "2026-05-01T09:00"),
        ("14:30 11 March 2024", "2024-03-11T14:30"),
        ("at 9:00", "2026-05-01T09:00"),
        ("the day before yesterday, 14:30", "2026-04-29T14:30"),
        ("11th of March 2024", "2024-03-11"),
    ],
)
def test_a_date_in_words_is_in_the_zone_of_now_and_lies_in_the_past(typed: str, meant: str) -> None:
    for zone in (ZoneInfo("Europe/Berlin"), dt.UTC):
        expected = dt.datetime.fromisoformat(meant).replace(tzinfo=zone)
        assert parse_datetime(typed, now=NOW.astimezone(zone)) == expected


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("3 months ago", dt.datetime(2026, 2, 28, 12, tzinfo=dt.UTC)),
        ("last month", dt.datetime(2026, 4, 30, 12, tzinfo=dt.UTC)),
        ("a year ago", dt.datetime(2025, 5, 31, 12, tzinfo=dt.UTC)),
        ("past two years", dt.datetime(2024, 5, 31, 12, tzinfo=dt.UTC)),
        ("6 months", dt.datetime(2025, 11, 30, 12, tzinfo=dt.UTC)),
    ],
)
def test_months_and_years_end_on_a_day_that_exists(typed: str, meant: dt.datetime) -> None:
    assert parse_datetime(typed, now=dt.datetime(2026, 5, 31, 12, tzinfo=dt.UTC)) == meant


@pytest.mark.parametrize(
    "typed", ["month", "years ago", "999 years", "12 monthsago years", "14:30 14:30", "14:30 UTC+1"]
)
def test_what_only_resembles_a_time_is_refused(typed: str) -> None:
    with pytest.raises(BadInput):
        parse_datetime(typed, now=NOW)


def test_times_that_chats_and_logs_write_are_in_their_own_zone() -> None:
    meant, now = dt.datetime(2024, 3, 11, 14, 32, tzinfo=dt.UTC), NOW.astimezone(ZoneInfo("Europe/Berlin"))
    for typed in ("<t:1710167520>", "<t:1710167520:R>", "2024-03-11 14:32 UTC", "2024-03-11T14:32:00 utc"):
        assert parse_datetime(typed, now=now) == meant, typed
    assert parse_datetime("14:32 UTC, yesterday", now=now) == dt.datetime(2026, 4, 30, 14, 32, tzinfo=dt.UTC)


def test_two_times_with_a_dash_are_a_span() -> None:
    for typed in ("11 Mar 2024, 14:00–15:30", "11 Mar 2024, 14:00 - 15:30"):
        assert parse_datetime(typed, now=NOW) == dt.datetime(2024, 3, 11, 14, tzinfo=dt.UTC)
        assert parse_datetime(typed, now=NOW, is_end=True) == dt.datetime(2024, 3, 11, 15, 30, tzinfo=dt.UTC)
    # An offset from UTC is none.
    assert parse_datetime("2024-03-11T14:30-05:00", now=NOW) == dt.datetime(2024, 3, 11, 19, 30, tzinfo=dt.UTC)


def test_the_last_29_february_is_found_only_in_a_leap_year() -> None:
    leap = dt.datetime(2025, 2, 1, tzinfo=dt.UTC)
    assert parse_datetime("29 February", now=leap) == dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
    with pytest.raises(BadInput, match="not a valid date") as refused:
        parse_datetime("29 February", now=NOW)
    # The examples write dates in one form.
    assert not re.search(r"\d{4}-\d{2}", str(refused.value.text))


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


@pytest.mark.parametrize(
    ("typed", "begin", "end"),
    [
        ("10–19 October 2025", "2025-10-10", "2025-10-20"),
        ("28 February – 8 March 2024", "2024-02-28", "2024-03-09"),
        ("28 December 2023 – 6 January 2024", "2023-12-28", "2024-01-07"),
        ("29 April – 8 May 2026", "2026-04-29", "2026-05-01T14:00"),
        ("March 2024", "2024-03-01", "2024-04-01"),
        ("11 Mar 2024, 14:00 to 15:00", "2024-03-11T14:00", "2024-03-11T15:00"),
        ("from 11 Mar 2024, 23:00 to 12 Mar 2024, 01:30 (00:30 UTC)", "2024-03-11T23:00", "2024-03-12T01:30"),
        ("11 Mar 2024, 13:00 to 11 Mar 2024, 14:00 UTC", "2024-03-11T14:00", "2024-03-11T15:00"),
        ("yesterday 14:00 to 15:00", "2026-04-30T14:00", "2026-04-30T15:00"),
    ],
)
def test_a_span_means_its_beginning_or_its_end(typed: str, begin: str, end: str) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    now = NOW.astimezone(berlin)
    assert parse_datetime(typed, now=now) == dt.datetime.fromisoformat(begin).replace(tzinfo=berlin)
    assert parse_datetime(typed, now=now, is_end=True) == dt.datetime.fromisoformat(end).replace(tzinfo=berlin)


def test_the_id_and_the_link_of_a_message_mean_when_it_was_posted() -> None:
    time = dt.datetime(2024, 3, 11, 14, 30, tzinfo=dt.UTC)
    message_id = first_id_from(time)
    for typed in (
        str(message_id),
        f"https://discord.com/channels/1310839841583284225/1310839841583271937/{message_id}",
    ):
        assert len(typed) <= MAX_CHARACTERS
        assert parse_datetime(typed, now=NOW) == time


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("2026-05-02", "future"),
        ("1944-01-01", "before the first possible message"),
        ("", "not a valid date"),
        ("2024-02-30", "not a valid date"),
        ("-5 minutes ago", "not a valid date"),
        ("umpteen minutes ago", "not a valid date"),
        ("3/11/2024", "can be two dates"),
        ("31.2.2024", "not a valid date"),
        ("13 pm", "not a valid date"),
        ("11 March 2024 to", "not a valid date"),
        ("last", "not a valid date"),
        ("May", "not a valid date"),
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


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("2024-03-11", dt.datetime(2024, 3, 11, tzinfo=BERLIN), dt.datetime(2024, 3, 12, tzinfo=BERLIN)),
        ("11 March 2024", dt.datetime(2024, 3, 11, tzinfo=BERLIN), dt.datetime(2024, 3, 12, tzinfo=BERLIN)),
        ("11 Mar 2024, 15:02", *[dt.datetime(2024, 3, 11, 15, 2, tzinfo=BERLIN)] * 2),
        ("10–19 October 2024", dt.datetime(2024, 10, 10, tzinfo=BERLIN), dt.datetime(2024, 10, 20, tzinfo=BERLIN)),
        ("March 2999", dt.datetime(2999, 3, 1, tzinfo=BERLIN), dt.datetime(2999, 4, 1, tzinfo=BERLIN)),
        ("2999-12-31", dt.datetime(2999, 12, 31, tzinfo=BERLIN), dt.datetime(3000, 1, 1, tzinfo=BERLIN)),
    ],
)
def test_a_bound_of_a_period_may_be_in_the_future_and_its_last_day_belongs_to_it(
    text: str, first: dt.datetime, end: dt.datetime
) -> None:
    now = dt.datetime(2026, 11, 27, 8, tzinfo=BERLIN)
    assert parse_bound(text, now=now) == first
    assert parse_bound(text, now=now, is_end=True) == end


@pytest.mark.parametrize("text", ["soon", "", "3/11/2024", "9999-12-31", "0001-01-01", "99999-01-01", "2024-02-30"])
def test_other_texts_are_no_bound_in_any_time_zone(text: str) -> None:
    for name in ("Asia/Tokyo", "America/Los_Angeles"):
        now = dt.datetime(2026, 11, 27, 8, tzinfo=ZoneInfo(name))
        for is_end in (False, True):
            with pytest.raises(BadInput):
                parse_bound(text, now=now, is_end=is_end)
