"""A label of a time axis is before its tick, or hidden, only where it has no room."""

from __future__ import annotations

import datetime as dt

import pytest

from moderation.domain.zoom import Window, Zoom
from moderation.views.purge_times import list_ticks

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("start", "end", "labels", "narrow", "wide"),
    [
        # At 87 % a time has room on a phone; at 93 % it has not, but on a wide axis; at 97 % on neither.
        ("2024-03-11T14:04", "2024-03-11T14:34", ["14:10", "14:20", "14:30"], "after after after", "after after after"),
        (
            "2024-03-11T14:02",
            "2024-03-11T14:32",
            ["14:10", "14:20", "14:30"],
            "after after before",
            "after after after",
        ),
        (
            "2024-03-11T14:01",
            "2024-03-11T14:31",
            ["14:10", "14:20", "14:30"],
            "after after before",
            "after after before",
        ),
        # "1 Nov" before its tick would be next to "1 Oct", without a tick between them.
        (
            "2024-07-22T00:00",
            "2024-11-10T00:00",
            ["1 Aug", "1 Sep", "1 Oct", "1 Nov"],
            "after after after hidden",
            "after after after after",
        ),
        # Labels with a year are too long for a phone to show all of them.
        (
            "2023-10-11T17:22",
            "2024-11-29T22:04",
            ["1 Jan 2024", "1 Apr 2024", "1 Jul 2024", "1 Oct 2024"],
            "after hidden after hidden",
            "after after after after",
        ),
    ],
)
def test_a_label_is_before_its_tick_or_hidden_only_where_it_has_no_room(
    start: str, end: str, labels: list[str], narrow: str, wide: str
) -> None:
    begin, until = (dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) for text in (start, end))
    ticks = list_ticks(Window(Zoom.ALL, begin, until, dt.timedelta(minutes=1)))
    assert [tick.text for tick in ticks] == labels
    assert [tick.narrow for tick in ticks] == narrow.split()
    assert [tick.wide for tick in ticks] == wide.split()
