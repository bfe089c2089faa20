"""The age of a time is in whole units; less than two days are given in hours."""

from __future__ import annotations

import datetime as dt

import pytest

from moderation.presentation.formats import format_ago

NOW = dt.datetime(2026, 5, 14, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (dt.timedelta(seconds=4), "just now"),
        (dt.timedelta(seconds=59), "59 seconds ago"),
        (dt.timedelta(seconds=60), "1 minute ago"),
        (dt.timedelta(minutes=59, seconds=40), "59 minutes ago"),
        (dt.timedelta(minutes=60), "1 hour ago"),
        (dt.timedelta(hours=43, minutes=50), "43 hours ago"),
        (dt.timedelta(hours=48), "2 days ago"),
        (dt.timedelta(hours=66), "2 days ago"),
        (dt.timedelta(days=29, hours=23), "29 days ago"),
        (dt.timedelta(days=30), "14 Apr 2026"),
    ],
)
def test_an_age_is_in_the_largest_unit_that_is_not_misread(ago: dt.timedelta, text: str) -> None:
    assert format_ago(NOW - ago, NOW) == text
