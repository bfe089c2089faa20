"""The tag of an account says when it was first seen; if only a period is known, since which day at the earliest."""

import datetime as dt

import pytest
from django.utils import timezone

from chatstore.domain.snowflakes import MIN_ID, ms_of, unix_ms
from moderation.domain.first_seen import FirstSeen
from moderation.presentation.first_seen import format_first_seen

NOW = dt.datetime(2026, 11, 29, 9, 30, tzinfo=dt.UTC)
BEGIN, END = dt.datetime(2026, 11, 20, tzinfo=dt.UTC), dt.datetime(2026, 11, 30, tzinfo=dt.UTC)
PERIOD = FirstSeen(unix_ms(BEGIN), unix_ms(END) - 1)
LAST_YEAR = FirstSeen(unix_ms(dt.datetime(2025, 12, 12, tzinfo=dt.UTC)), unix_ms(END) - 1)
ANY_TIME = FirstSeen(ms_of(MIN_ID), unix_ms(END) - 1)


def exactly(time: dt.datetime) -> FirstSeen:
    return FirstSeen(unix_ms(time), unix_ms(time))


@pytest.mark.parametrize(
    ("seen", "made_at", "words"),
    [
        (exactly(NOW - dt.timedelta(minutes=3)), None, "first seen 3 minutes ago"),
        (PERIOD, None, "not seen before 20 Nov"),
        # An account that was made within the period has not posted before.
        (PERIOD, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "not seen before 20 Nov"),
        (PERIOD, dt.datetime(2026, 11, 27, 4, tzinfo=dt.UTC), "not seen before 27 Nov"),
        (PERIOD, NOW - dt.timedelta(hours=2), "first seen today"),
        (FirstSeen(unix_ms(NOW) - 60_000, unix_ms(NOW)), None, "first seen today"),
        # The index may lack places.
        (ANY_TIME, None, "may be new here"),
        (ANY_TIME, dt.datetime(2026, 11, 27, 4, tzinfo=dt.UTC), "not seen before 27 Nov"),
        # Of an old account its age says nothing.
        (ANY_TIME, dt.datetime(2019, 3, 5, tzinfo=dt.UTC), "may be new here"),
        (LAST_YEAR, None, "not seen before 12 Dec 2025"),
        (None, None, "may be new here"),
    ],
)
def test_it_says_what_is_known(seen: FirstSeen | None, made_at: dt.datetime | None, words: str) -> None:
    with timezone.override("UTC"):
        assert format_first_seen(seen, made_at=made_at, now=NOW) == words


def test_days_are_those_of_the_viewer() -> None:
    with timezone.override("America/New_York"):
        assert format_first_seen(PERIOD, made_at=None, now=NOW) == "not seen before 19 Nov"
