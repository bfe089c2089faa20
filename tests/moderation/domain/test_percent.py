"""A part is never rounded to nothing or to everything."""

from __future__ import annotations

import pytest

from moderation.presentation.formats import format_percent, round_percent


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0.0 %"), (0.003, "0.1 %"), (25.04, "25.0 %"), (99.98, "99.9 %"), (100, "100.0 %"), (None, "unknown")],
)
def test_only_none_is_0_and_only_all_is_100_percent(value: float | None, text: str) -> None:
    assert format_percent(value) == text


@pytest.mark.parametrize(
    ("part", "whole", "percent"),
    [
        (0, 7, 0),
        (1, 10_000, 1),
        (30_400, 45_600, 67),
        (1, 3, 33),
        (1, 8, 13),
        (9_999, 10_000, 99),
        (7, 7, 100),
        (0, 0, 0),
    ],
)
def test_whole_percent_are_rounded_but_not_to_nothing_or_to_all(part: int, whole: int, percent: int) -> None:
    assert round_percent(part, whole) == percent
