"""Text fields are filled in with dates as pages print them, if they are read as the same time."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone, translation

from moderation.presentation.typed_dates import print_typed, type_time

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("2026-09-28", "28 Sep 2026"),
        ("2026-09-28T00:00", "28 Sep 2026, 00:00"),
        ("2026-09-28 15:02", "28 Sep 2026, 15:02"),
        ("2026-09-28T13:02Z", "28 Sep 2026, 15:02"),
        ("yesterday 14:30", "yesterday 14:30"),
        ("28 September 2026", "28 September 2026"),
        ("", ""),
        # Printed, they would be other times, or none.
        ("2026-09-28T15:02:07", "2026-09-28T15:02:07"),
        ("2026-10-25T02:30+01:00", "2026-10-25T02:30+01:00"),
        ("2026-02-30", "2026-02-30"),
        ("0001-01-01T00:00Z", "0001-01-01T00:00Z"),
        ("9999-12-31T23:59Z", "9999-12-31T23:59Z"),
    ],
)
def test_iso_dates_are_shown_as_printed(typed: str, shown: str) -> None:
    with timezone.override(BERLIN):
        assert print_typed(typed) == shown


def test_a_language_that_fields_do_not_read_keeps_iso_dates() -> None:
    with timezone.override(BERLIN), translation.override("de"):
        assert print_typed("2026-05-28") == "2026-05-28"
        assert type_time(dt.datetime(2026, 5, 28, 13, 2, tzinfo=dt.UTC)) == "2026-05-28T15:02+02:00"


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (dt.datetime(2026, 9, 28, 13, 2, tzinfo=dt.UTC), "28 Sep 2026, 15:02"),
        (dt.datetime(2026, 9, 28, 13, 2, 7, tzinfo=dt.UTC), "2026-09-28T15:02:07.000+02:00"),
        (dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC), "2026-10-25T02:30+01:00"),
    ],
)
def test_a_time_is_filled_in_as_printed_or_else_exactly(time: dt.datetime, shown: str) -> None:
    with timezone.override(BERLIN):
        assert type_time(time) == shown
