"""Every date that pages write can be typed, in every time zone."""

import datetime as dt
from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from django.utils.html import strip_tags
from hypothesis import example, given
from hypothesis import strategies as st

from moderation.domain.datetimes import MAX_CHARACTERS, parse_datetime
from moderation.presentation import formats
from moderation.templatetags.chat import span_of_times

NOW = dt.datetime(2026, 5, 1, 12, 30, 41, tzinfo=dt.UTC)

ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "Europe/London", "America/Los_Angeles", "Asia/Kathmandu", "Pacific/Apia", "Pacific/Niue"]
)
TIMES = st.timedeltas(dt.timedelta(days=3), dt.timedelta(days=20_000)).map(lambda ago: NOW - ago)

Write = Callable[[dt.datetime], str]
Round = Callable[[dt.datetime], dt.datetime]


def to_day(time: dt.datetime) -> dt.datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def to_minute(time: dt.datetime) -> dt.datetime:
    return time.replace(second=0, microsecond=0)


def to_second(time: dt.datetime) -> dt.datetime:
    return time.replace(microsecond=0)


def possible_times(local: dt.datetime) -> list[dt.datetime]:
    """Return a time in UTC, and where the clock was set back, the first one that it shows so: a text without UTC beside
    it means that one.

    In UTC, since Python calls no time of another zone equal to a time that the clock shows twice.
    """
    return [each.astimezone(dt.UTC) for each in (local, local.replace(fold=0))]


FORMATS: list[tuple[Write, Round]] = [
    (formats.format_day, to_day),
    (formats.format_short_day, to_day),
    (lambda time: formats.format_long_day(timezone.localtime(time).date()), to_day),
    (lambda time: formats.format_month(timezone.localtime(time).date()), lambda time: to_day(time).replace(day=1)),
    (formats.format_datetime, to_minute),
    (formats.format_deadline, to_minute),
    (formats.format_exact, to_second),
    (lambda time: formats.format_slot(timezone.localtime(time), this_year=1), to_minute),
    (lambda time: f"since {formats.format_datetime(time)}", to_minute),
    (lambda time: f"{time:%Y-%m-%d}T00:00Z", lambda time: to_day(time.astimezone(dt.UTC))),
]


@pytest.mark.parametrize(("write", "round_down"), FORMATS)
@given(time=TIMES, zone=ZONES)
@example(time=dt.datetime(2024, 10, 27, 1, 59, tzinfo=dt.UTC), zone="Europe/Berlin")
def test_a_time_that_a_page_writes_is_understood(write: Write, round_down: Round, time: dt.datetime, zone: str) -> None:
    with timezone.override(zone):
        written, meant = write(time), round_down(time.astimezone(ZoneInfo(zone)))
        assert len(written) <= MAX_CHARACTERS
        read = parse_datetime(written, now=timezone.localtime(NOW))
    assert read in possible_times(meant), written


@given(time=TIMES, length=st.timedeltas(dt.timedelta(minutes=1), dt.timedelta(days=2)), zone=ZONES)
def test_a_span_of_times_that_a_page_writes_is_understood(time: dt.datetime, length: dt.timedelta, zone: str) -> None:
    with timezone.override(zone):
        now = timezone.localtime(NOW)
        written = formats.format_span(time, time + length)
        in_zone = (end.astimezone(ZoneInfo(zone)) for end in (time, time + length))
        ends = [to_minute(end).replace(fold=0).astimezone(dt.UTC) for end in in_zone]
        assert [parse_datetime(written, now=now, is_end=is_end) for is_end in (False, True)] == ends, written


@given(time=TIMES, length=st.timedeltas(dt.timedelta(minutes=1), dt.timedelta(days=2)), zone=ZONES)
@example(time=dt.datetime(2024, 10, 26, 22, tzinfo=dt.UTC), length=dt.timedelta(hours=7), zone="Europe/London")
def test_when_something_began_and_ended_as_a_page_writes_it_is_understood(
    time: dt.datetime, length: dt.timedelta, zone: str
) -> None:
    with timezone.override(zone):
        now = timezone.localtime(NOW)
        written = strip_tags(span_of_times(time, time + length))
        begin, end = (to_minute(each.astimezone(ZoneInfo(zone))) for each in (time, time + length))
        assert parse_datetime(written, now=now) in possible_times(begin), written
        assert parse_datetime(written, now=now, is_end=True) == end.astimezone(dt.UTC), written


@given(first=st.dates(dt.date(1971, 1, 1), dt.date(2026, 4, 20)), days=st.integers(1, 9), zone=ZONES)
def test_a_span_of_days_that_a_page_writes_is_understood(first: dt.date, days: int, zone: str) -> None:
    last = first + dt.timedelta(days=days)
    with timezone.override(zone):
        now = timezone.localtime(NOW)
        begin, end = (dt.datetime.combine(day, dt.time(), now.tzinfo) for day in (first, last + dt.timedelta(days=1)))
        # In UTC: where clocks are set forward at midnight, a day begins at a time that does not exist.
        ends = [time.astimezone(dt.UTC) for time in (begin, end)]
        for written in (
            formats.format_days(first, last),
            formats.format_short_days(first, last),
            formats.format_span(begin, end),
        ):
            read = [parse_datetime(written, now=now, is_end=is_end).astimezone(dt.UTC) for is_end in (False, True)]
            assert read == ends, written


@given(ago=st.integers(5, 29 * 86_400), zone=ZONES)
def test_how_long_ago_that_a_page_writes_is_understood(ago: int, zone: str) -> None:
    time = NOW - dt.timedelta(seconds=ago)
    with timezone.override(zone):
        now = timezone.localtime(NOW)
        for written in (formats.format_ago(time, NOW), formats.format_long_duration(ago)):
            read = parse_datetime(written, now=now)
            # Pages round to whole units.
            assert abs(read - time) < dt.timedelta(hours=24), written
        plain = formats.format_duration(ago)
        for written in (plain, formats.keep_together(plain), plain.replace(" ", "\u202f")):
            assert abs(parse_datetime(written, now=now) - time) < dt.timedelta(minutes=1), written


def test_a_span_of_days_breaks_only_after_its_dash() -> None:
    days = formats.format_days(dt.date(2026, 8, 31), dt.date(2026, 9, 9))
    assert days == "31\u00a0August\u00a0– 9\u00a0September\u00a02026"
    assert formats.format_short_days(dt.date(2025, 12, 28), dt.date(2026, 1, 6)).count(" ") == 1
    first, last = dt.date(2026, 2, 12), dt.date(2026, 2, 21)
    assert formats.format_days(first, last) == "12–21\u00a0February\u00a02026"
    assert formats.format_short_days(first, last) == "12–21\u00a0Feb\u00a02026"
    assert formats.format_days(last, last) == "21\u00a0February\u00a02026"
    assert formats.format_short_days(last, last) == "21\u00a0Feb\u00a02026"
