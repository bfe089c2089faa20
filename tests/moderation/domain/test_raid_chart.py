"""The chart of a raid has a bar for each minute, at most sixty bars, and leaves no message out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.milliseconds import MINUTE_MS
from moderation.presentation.raid_chart import MAX_BARS, count_minutes

pytestmark = pytest.mark.unit


def test_each_minute_is_a_bar_with_the_messages_of_the_raid_and_of_the_others() -> None:
    chart = count_minutes([10, 20, 70_000], [30], start_ms=0, end_ms=150_000)
    assert [(bar.raid, bar.other) for bar in chart.bars] == [(2, 1), (1, 0), (0, 0)]
    assert (chart.minutes, chart.most) == (1, 3)
    assert [bar.start_ms for bar in chart.bars] == [0, MINUTE_MS, 2 * MINUTE_MS]


def test_a_long_time_has_bars_of_several_minutes() -> None:
    chart = count_minutes([], [], start_ms=0, end_ms=150 * MINUTE_MS)
    assert (len(chart.bars), chart.minutes) == (50, 3)


@given(st.lists(st.integers(0, 10_000_000)), st.lists(st.integers(0, 10_000_000)))
def test_every_message_is_counted_once(raid: list[int], other: list[int]) -> None:
    chart = count_minutes(raid, other, start_ms=0, end_ms=10_000_001)
    assert sum(bar.raid for bar in chart.bars) == len(raid)
    assert sum(bar.other for bar in chart.bars) == len(other)
    assert len(chart.bars) <= MAX_BARS
    assert chart.most == max(bar.raid + bar.other for bar in chart.bars)
