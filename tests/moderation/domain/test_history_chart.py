"""Ninety days as lines: missing measurements are gaps, and actions are marked on the same axis."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moderation.presentation.formats import format_milliseconds, format_number, format_size
from moderation.presentation.history_chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    DayFigures,
    Mark,
    Scale,
    draw_history,
)

LAST = dt.date(2026, 11, 21)
FIRST = LAST - dt.timedelta(days=89)
LOG = Scale("Tombstones", format_number, limit=1_000, is_log=True)
PLAIN = Scale("Size", format_size, limit=50_000_000)
SCALES = [LOG, PLAIN, Scale("Page", format_milliseconds)]

values = st.none() | st.floats(0, 1e9, allow_nan=False)
days = st.lists(
    st.builds(
        DayFigures,
        st.integers(0, 89).map(lambda n: FIRST + dt.timedelta(days=n)),
        st.tuples(values, values, values),
    ),
    max_size=90,
    unique_by=lambda day: day.day,
).map(lambda found: sorted(found, key=lambda day: day.day))


@given(days)
def test_each_measured_day_is_one_dot_inside_the_chart(found: list[DayFigures]) -> None:
    chart = draw_history(found, [], SCALES, first=FIRST, last=LAST)
    for index, panel in enumerate(chart.panels):
        assert len(panel.dots) == sum(day.values[index] is not None for day in found)
        assert all(LEFT <= dot.x <= WIDTH - RIGHT and TOP <= dot.y <= HEIGHT - BOTTOM for dot in panel.dots)
        assert all(TOP <= tick.y <= HEIGHT - BOTTOM for tick in panel.ticks)


@given(days)
def test_a_higher_value_is_never_drawn_lower(found: list[DayFigures]) -> None:
    chart = draw_history(found, [], SCALES, first=FIRST, last=LAST)
    for index, panel in enumerate(chart.panels):
        measured = [value for day in found if (value := day.values[index]) is not None]
        ranked = sorted(zip(measured, (dot.y for dot in panel.dots), strict=True))
        assert [y for _, y in ranked] == sorted((y for _, y in ranked), reverse=True)


def day(ago: int, *figures: float | None) -> DayFigures:
    return DayFigures(LAST - dt.timedelta(days=ago), (*figures, *(None,) * (3 - len(figures))))


def test_a_day_that_no_line_leads_to_is_marked() -> None:
    chart = draw_history([day(9, 1.0), day(5, 1.0), day(4, 1.0)], [], SCALES, first=FIRST, last=LAST)
    assert [dot.is_alone for dot in chart.panels[0].dots] == [True, False, False]


def test_a_day_that_was_not_measured_breaks_the_line() -> None:
    chart = draw_history([day(9, 1), day(8, 2), day(6, 3), day(5, 4), day(4, 5)], [], SCALES, first=FIRST, last=LAST)
    assert [len(points.split()) for points in chart.panels[0].lines] == [2, 3]
    assert chart.panels[1].lines == []
    assert chart.panels[1].summary == "Not measured on any day."


def test_the_limit_is_drawn_once_a_value_comes_near_it() -> None:
    far = draw_history([day(3, 10, 1_000_000)], [], SCALES, first=FIRST, last=LAST)
    near = draw_history([day(3, 800, 30_000_000)], [], SCALES, first=FIRST, last=LAST)
    assert [any(tick.is_limit for tick in panel.ticks) for panel in far.panels] == [False, False, False]
    assert [any(tick.is_limit for tick in panel.ticks) for panel in near.panels] == [True, True, False]


def test_the_labels_of_an_axis_have_no_decimals_that_are_zero() -> None:
    chart = draw_history([day(3, 10, 1_500_000, 4.2)], [], SCALES, first=FIRST, last=LAST)
    labels = [[tick.label for tick in panel.ticks] for panel in chart.panels]
    assert labels == [["0", "100", "10"], ["0 B", "2 MB"], ["0 ms", "5 ms"]]
    assert "Highest: 4.2 ms" in chart.panels[2].summary


def test_actions_are_marked_on_the_axis_and_in_the_table() -> None:
    purged = dt.datetime(2026, 11, 11, 23, 59, tzinfo=dt.UTC)
    marks = [
        Mark("purge", purged, "purge 81 removed 1,204 messages"),
        Mark("full repair", purged, "full repair, run 7"),
    ]
    too_old = Mark("purge", dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "purge 1 removed 1 message")
    chart = draw_history([day(10, 4, 5, 6)], [too_old, *marks], SCALES, first=FIRST, last=LAST)
    assert [mark.title for mark in chart.marks] == [mark.label for mark in marks]
    assert chart.kinds == ["full repair", "purge"]
    (row,) = chart.rows
    assert (row.day, row.cells) == (dt.date(2026, 11, 11), ["4", "5 B", "6.0 ms"])
    assert row.actions == [mark.label for mark in marks]


def test_a_day_with_only_a_mark_is_shown_as_not_measured() -> None:
    mark = Mark("full repair", dt.datetime(2026, 11, 1, 3, tzinfo=dt.UTC), "full repair, run 7")
    (row,) = draw_history([], [mark], SCALES, first=FIRST, last=LAST).rows
    assert set(row.cells) == {"not measured"}


def test_the_table_lists_the_first_actions_of_a_day_and_purges_before_repairs() -> None:
    at = dt.datetime(2026, 11, 1, 3, tzinfo=dt.UTC)
    repairs = [Mark("full repair", at, f"full repair, run {number}") for number in range(8)]
    purge = Mark("purge", at, "purge 81 removed 1,204 messages")
    (row,) = draw_history([], [*repairs, purge], SCALES, first=FIRST, last=LAST).rows
    assert row.actions == [purge.label, *(mark.label for mark in repairs[:3]), "and 5 more"]


def test_the_field_of_each_day_is_as_wide_as_its_share() -> None:
    chart = draw_history([day(6, 1), day(0, 1)], [], SCALES, first=LAST - dt.timedelta(days=6), last=LAST)
    assert chart.days == 7
    first, last = chart.panels[0].dots
    assert first.left == chart.left
    assert abs(last.left + chart.day_width - chart.right) < 0.2
    assert all(abs(dot.left + chart.day_width / 2 - dot.x) < 0.2 for dot in (first, last))


@pytest.mark.parametrize(
    ("span", "labels"),
    [
        (7, ["15 Nov", "17 Nov", "19 Nov", "21 Nov"]),
        (30, ["1 Nov", "11 Nov"]),
        (90, ["1 Sep", "1 Oct", "1 Nov"]),
    ],
)
def test_the_axis_labels_every_other_day_round_days_or_months(span: int, labels: list[str]) -> None:
    chart = draw_history([], [], SCALES, first=LAST - dt.timedelta(days=span - 1), last=LAST)
    assert [label for _, label in chart.dates] == labels


def test_the_last_day_with_room_for_its_label_has_one() -> None:
    chart = draw_history([], [], SCALES, first=dt.date(2026, 11, 3), last=dt.date(2026, 12, 2))
    assert [label for _, label in chart.dates] == ["11 Nov", "21 Nov", "1 Dec"]


def test_an_empty_chart_is_labelled() -> None:
    assert draw_history([], [], SCALES, first=FIRST, last=LAST).is_empty
