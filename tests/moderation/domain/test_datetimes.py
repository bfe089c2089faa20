"""Parsing of dates that people type."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import time_of
from moderation.domain.datetimes import first_id_from, parse_datetime

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
    ],
)
def test_how_long_ago_is_counted_from_now(typed: str, meant: dt.timedelta) -> None:
    assert parse_datetime(typed, now=NOW) == NOW - meant


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
        ("99999 days ago", "before the first possible message"),
        ("0001-01-01T00:00+12:00", "not a valid date"),
    ],
)
def test_an_unusable_date_is_refused_with_the_reason(typed: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_datetime(typed, now=NOW)
