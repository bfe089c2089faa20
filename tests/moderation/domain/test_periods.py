"""A ten-day period of a user's messages is shown from its first day, also while it is open."""

import datetime as dt

import pytest

from chatstore.domain.buckets import bucket_at, bucket_days
from chatstore.domain.snowflakes import unix_ms
from moderation.presentation.formats import format_days
from moderation.templatetags.chat import period_until

FIRST, LAST = bucket_days(bucket_at(unix_ms(dt.datetime(2024, 3, 15, tzinfo=dt.UTC))))


@pytest.mark.parametrize("day", range(10))
def test_it_begins_on_the_first_day_of_its_bucket(day: int) -> None:
    until = FIRST + dt.timedelta(days=day)
    assert until <= LAST
    assert period_until(until) == format_days(FIRST, until)
