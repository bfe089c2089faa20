"""A selection says what it matches, and an empty one is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import first_id_at
from moderation.domain.selection import TICKED_AT_MOST, Selection, say_selection

rows = st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 4)), max_size=40, unique_by=lambda row: row[0])


@given(rows, st.sets(st.integers(1, 4)), st.none() | st.integers(-60, 0), st.none() | st.integers(1, 60))
def test_authors_and_ids_narrow_together(
    sent: list[tuple[int, int]], authors: set[int], after: int | None, before: int | None
) -> None:
    if not authors and after is None and before is None:
        return
    selection = Selection(channel_id=1, author_ids=tuple(authors), after_id=after, before_id=before)
    by_hand = [
        (message, author)
        for message, author in sent
        if (not authors or author in authors)
        and (after is None or message >= after)
        and (before is None or message < before)
    ]
    assert selection.match(sent) == by_hand
    assert Selection.from_json(selection.as_json()) == selection


def test_ticked_messages_match_only_themselves() -> None:
    selection = Selection(channel_id=1, message_ids=(3, 9))
    assert selection.match([(1, 1), (3, 1), (4, 1)]) == [(3, 1)]


@pytest.mark.parametrize("fields", [{"message_ids": (3,)}, {"author_ids": (1,)}, {"after_id": 1}, {"everything": True}])
def test_a_row_without_an_author_never_matches(fields: dict[str, Any]) -> None:
    assert Selection(channel_id=1, **fields).match([(3, None)]) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "Nothing is selected"),
        ({"everything": True, "author_ids": (1,)}, "choose one of them"),
        ({"message_ids": (1,), "author_ids": (1,)}, "cannot be combined"),
        ({"message_ids": tuple(range(TICKED_AT_MOST + 1))}, "At most 1,000"),
        ({"after_id": 5, "before_id": 5}, "does not lie after"),
    ],
)
def test_a_selection_that_makes_no_sense_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Selection(channel_id=1, **fields)


def test_a_selection_reads_as_a_sentence() -> None:
    may = first_id_at(1_714_521_600_000)
    selection = Selection(channel_id=1, author_ids=(7, 8), after_id=may)
    said = say_selection(selection, channel="#general", authors={7: "Victor"})
    assert said == "everything by Victor and user 8 in #general since 1 May 2024"
    assert say_selection(Selection(channel_id=1, everything=True), channel="#general", authors={}) == (
        "the whole channel #general"
    )
