"""Numbers beside channels in the sidebar are short, and rounded down."""

import pytest

from moderation.presentation.formats import format_short


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (999, "999"), (1_000, "1.0k"), (1_999, "1.9k"), (9_999, "9.9k"), (10_000, "10k"), (123_456, "123k")],
)
def test_thousands_have_a_decimal_place_up_to_ten(number: int, shown: str) -> None:
    assert format_short(number) == shown
