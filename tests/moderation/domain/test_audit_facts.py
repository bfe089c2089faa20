"""Values of audit entries as text; nothing is "–", of each kind."""

from typing import Any

import pytest

from moderation.presentation.audit import all_facts

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        ([], "–"),
        ({}, "–"),
        (5000, "5,000"),
        (["a", "b"], "a, b"),
        ({"messages_per_hour": "5000", "purges_per_hour": "2"}, "messages per hour 5000 · purges per hour 2"),
    ],
)
def test_each_kind_of_value_is_a_text(value: Any, text: str) -> None:
    assert all_facts({"before": value}) == [("Before", text)]
