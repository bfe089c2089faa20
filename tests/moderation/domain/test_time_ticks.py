"""The last label of a time axis is left out only if it would be cut."""

from __future__ import annotations

import datetime as dt

import pytest

from moderation.domain.zoom import Window, Zoom
from moderation.views.purge_times import list_ticks

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("start", "end", "labels"),
    [
        # At 87 % a time has room; at 93 % it has not.
        ("2024-03-11T14:04", "2024-03-11T14:34", ["14:10", "14:20", "14:30"]),
        ("2024-03-11T14:02", "2024-03-11T14:32", ["14:10", "14:20"]),
        ("2024-03-06T00:00", "2024-04-06T00:00", ["11 Mar", "21 Mar", "1 Apr"]),
        ("2024-03-01T00:00", "2024-04-01T00:00", ["1 Mar", "11 Mar", "21 Mar"]),
    ],
)
def test_the_last_label_is_left_out_only_if_it_has_no_room(start: str, end: str, labels: list[str]) -> None:
    begin, until = (dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) for text in (start, end))
    ticks = list_ticks(Window(Zoom.ALL, begin, until, dt.timedelta(minutes=1)))
    assert [tick.text for tick in ticks] == labels
