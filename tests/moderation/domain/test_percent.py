"""A part is never rounded to nothing or to everything."""

from __future__ import annotations

import pytest

from moderation.presentation.formats import format_percent


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0.0 %"), (0.003, "0.1 %"), (25.04, "25.0 %"), (99.98, "99.9 %"), (100, "100.0 %"), (None, "unknown")],
)
def test_only_none_is_0_and_only_all_is_100_percent(value: float | None, text: str) -> None:
    assert format_percent(value) == text
