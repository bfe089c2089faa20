"""Times to come, relative to now."""

from __future__ import annotations

import datetime as dt

import pytest

from moderation.presentation.formats import format_ahead

pytestmark = pytest.mark.unit

NOW = dt.datetime(2026, 11, 26, 14, 0, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("ahead", "text"),
    [
        (dt.timedelta(seconds=59), "in less than a minute"),
        (dt.timedelta(minutes=90), "in 2 hours"),
        # Twice a day: in days, the second one and the third would be "in 1 day" and "in 2 days".
        (dt.timedelta(hours=12, minutes=30), "in 12 hours"),
        (dt.timedelta(hours=24, minutes=30), "in 24 hours"),
        (dt.timedelta(hours=36, minutes=30), "in 36 hours"),
        (dt.timedelta(hours=47), "in 47 hours"),
        (dt.timedelta(hours=47, minutes=45), "in 2 days"),
        (dt.timedelta(hours=48), "in 2 days"),
        (dt.timedelta(days=7), "in 7 days"),
    ],
)
def test_a_time_within_two_days_is_given_in_hours(ahead: dt.timedelta, text: str) -> None:
    assert format_ahead(NOW + ahead, NOW) == text
