"""The last label of a time axis is hidden on phones, or stands before its tick, only if it would be cut."""

from __future__ import annotations

import datetime as dt

import pytest

from moderation.domain.zoom import Window, Zoom
from moderation.views.purge_times import list_ticks

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("start", "end", "labels", "is_late", "is_before"),
    [
        # At 87 % a time has room on a phone; at 93 % it has not, but on a wide axis; at 97 % it has nowhere.
        ("2024-03-11T14:04", "2024-03-11T14:34", ["14:10", "14:20", "14:30"], False, False),
        ("2024-03-11T14:02", "2024-03-11T14:32", ["14:10", "14:20", "14:30"], True, False),
        ("2024-03-11T14:01", "2024-03-11T14:31", ["14:10", "14:20", "14:30"], True, True),
        ("2024-03-06T00:00", "2024-04-06T00:00", ["11 Mar", "21 Mar", "1 Apr"], False, False),
        ("2024-03-01T00:00", "2024-04-02T00:00", ["1 Mar", "11 Mar", "21 Mar", "1 Apr"], True, True),
    ],
)
def test_the_last_label_is_hidden_or_moved_only_if_it_has_no_room(
    start: str, end: str, labels: list[str], is_late: bool, is_before: bool
) -> None:
    begin, until = (dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) for text in (start, end))
    ticks = list_ticks(Window(Zoom.ALL, begin, until, dt.timedelta(minutes=1)))
    assert [tick.text for tick in ticks] == labels
    assert (ticks[-1].is_late, ticks[-1].is_before) == (is_late, is_before)
    assert not any(tick.is_late or tick.is_before for tick in ticks[:-1])
