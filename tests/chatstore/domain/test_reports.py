"""Values of a member's report are checked before anything is stored."""

from __future__ import annotations

import pytest

from chatstore.domain.errors import BadInput
from chatstore.domain.reports import MAX_REPORT_CHARACTERS, ReportCategory, check_category, check_report_text


def test_only_the_named_categories_are_accepted() -> None:
    assert [check_category(one.value) for one in ReportCategory] == list(ReportCategory)
    for wrong in ("", "SPAM", "spam ", "nothing"):
        with pytest.raises(BadInput, match="category"):
            check_category(wrong)


@pytest.mark.parametrize("wrong", [None, 7, b"spam", "a\x00b", "\ud800", "x" * (MAX_REPORT_CHARACTERS + 1)])
def test_a_text_that_cannot_be_stored_is_refused(wrong: object) -> None:
    with pytest.raises(BadInput):
        check_report_text(wrong)


def test_a_text_loses_the_whitespace_around_it() -> None:
    assert check_report_text("  same link everywhere\n") == "same link everywhere"
