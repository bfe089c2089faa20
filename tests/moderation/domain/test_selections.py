"""Matching of a selection; an empty one is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.errors import BadInput
from moderation.domain.filters import All, AnyOf, Author, Filter, Not, Pinned, Since, Words
from moderation.domain.selection import MAX_SELECTED_MESSAGES, Selection
from tests.moderation.channels import choose

rows = st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 4)), max_size=40, unique_by=lambda row: row[0])


def pick(selection: Selection, sent: list[tuple[Any, ...]]) -> list[Any]:
    """Apply the selection to rows with only these columns and without pins."""
    padding = (None,) * (len(selection.columns) - 2)
    return [row[:2] for row in selection.matcher()([(*row, *padding) for row in sent])]


@given(rows, st.sets(st.integers(1, 4)), st.none() | st.integers(-60, 0), st.none() | st.integers(1, 60))
def test_authors_and_ids_narrow_together(
    sent: list[tuple[int, int]], authors: set[int], after: int | None, before: int | None
) -> None:
    if not authors and after is None and before is None:
        return
    selection = choose(1, author_ids=tuple(authors), after_id=after, before_id=before)
    by_hand = [
        (message, author)
        for message, author in sent
        if (not authors or author in authors)
        and (after is None or message >= after)
        and (before is None or message < before)
    ]
    assert pick(selection, list(sent)) == by_hand
    assert Selection.from_json(selection.as_json()) == selection


def test_selected_messages_match_only_themselves() -> None:
    assert pick(choose(1, message_ids=(3, 9)), [(1, 1), (3, 1), (4, 1)]) == [(3, 1)]


@pytest.mark.parametrize("fields", [{"message_ids": (3,)}, {"author_ids": (1,)}, {"after_id": 1}, {"everything": True}])
def test_a_row_without_an_author_never_matches(fields: dict[str, Any]) -> None:
    assert pick(choose(1, **fields), [(3, None)]) == []


def test_an_excluded_message_is_kept() -> None:
    for chosen in ({"message_ids": (3, 4)}, {"where": Since(1)}, {"everything": True}):
        selection = Selection(channel_ids=(1,), except_ids=(4,), **chosen)
        assert pick(selection, [(3, 1), (4, 1)]) == [(3, 1)]


def test_a_filter_keeps_pinned_messages_unless_included() -> None:
    sent = [(3, 1, True), (4, 1, None), (5, 1, False)]
    by_filter = Selection(channel_ids=(1,), where=Author((1,)))
    assert by_filter.columns == ("message_id", "author_id", "pinned")
    assert [row[0] for row in by_filter.matcher()(sent)] == [4, 5]
    with_pinned = Selection(channel_ids=(1,), where=Author((1,)), with_pinned=True)
    assert [row[0] for row in with_pinned.matcher()([row[:2] for row in sent])] == [3, 4, 5]
    meant = Selection(channel_ids=(1,), where=All((Author((1,)), Pinned())))
    assert [row[0] for row in meant.matcher()(sent)] == [3]
    selected = Selection(channel_ids=(1,), message_ids=(3, 4))
    assert [row[0] for row in selected.matcher()(sent)] == [3, 4]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Nothing is selected"),
        ({"everything": True, "author_ids": (1,)}, "whole channel cannot be combined"),
        ({"message_ids": (1,), "author_ids": (1,)}, "cannot be combined"),
        ({"message_ids": tuple(range(MAX_SELECTED_MESSAGES + 1))}, "at most 1,000"),
        ({"after_id": 5, "before_id": 5}, "must be after its start"),
    ],
)
def test_an_invalid_selection_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        choose(1, **fields)


@pytest.mark.parametrize(
    "where",
    [Words("nitro"), Since(5), Not(Author((1,))), AnyOf((Author((1,)), Words("nitro"))), All((Not(Author((1,))),))],
)
def test_over_every_channel_only_named_authors_can_be_chosen(where: Filter) -> None:
    with pytest.raises(BadInput, match="Enter an author"):
        Selection(where=where)
    assert Selection(guild_id=9, where=where).author_ids is None


def test_over_every_channel_the_authors_are_known_from_the_filter() -> None:
    where = All((AnyOf((Author((1,)), All((Author((2, 3)), Words("nitro"))))), Author((2, 1, 4))))
    assert Selection(where=where).author_ids == frozenset({1, 2})


@pytest.mark.parametrize("channels", [(), (1, 2)])
@pytest.mark.parametrize("fields", [{"message_ids": (3,)}, {"everything": True}])
def test_selected_messages_and_a_whole_channel_need_one_channel(channels: tuple[int, ...], fields: Any) -> None:
    with pytest.raises(BadInput, match="exactly one channel"):
        Selection(channel_ids=channels, **fields)
