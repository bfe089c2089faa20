"""A narrowed selection matches what it matched before, without one author, or of one author only."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.errors import BadInput
from moderation.domain.filters import (
    All,
    AnyOf,
    Author,
    Filter,
    FirstSeenWithin,
    FromBot,
    JoinedWithin,
    Not,
    Pinned,
    Since,
    Words,
)
from moderation.domain.narrowing import only_author, rules_out, without_author, without_channel
from moderation.domain.selection import Selection

authors = st.builds(Author, st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True).map(tuple))
leaves: st.SearchStrategy[Filter] = st.one_of(authors, st.builds(Since, st.integers(-20, 20)), st.just(Pinned()))
parts = st.one_of(leaves, st.builds(Not, leaves), st.builds(AnyOf, st.lists(leaves, min_size=1, max_size=2).map(tuple)))
wheres = st.one_of(parts, st.builds(All, st.lists(parts, min_size=1, max_size=4).map(tuple)))
rows = st.lists(
    st.tuples(st.integers(-20, 20), st.integers(1, 4), st.booleans()), max_size=30, unique_by=lambda row: row[0]
)


def matches(selection: Selection, sent: list[tuple[int, int, bool]]) -> list[tuple[int, int]]:
    """Return (message id, author id) of the matching rows."""
    with_columns: list[list[Any]] = [
        [{"message_id": message, "author_id": author, "pinned": pinned}[name] for name in selection.columns]
        for message, author, pinned in sent
    ]
    return [(row[0], row[1]) for row in selection.matcher()(with_columns)]


@given(st.none() | wheres, st.booleans(), rows, st.integers(1, 4))
def test_an_author_is_kept_or_is_the_only_one(
    where: Filter | None, with_pinned: bool, sent: list[tuple[int, int, bool]], author: int
) -> None:
    try:
        selection = Selection(channel_ids=(1,), where=where, everything=where is None, with_pinned=with_pinned)
    except BadInput:
        return  # No id can match.
    before = matches(selection, sent)
    assert matches(without_author(selection, author), sent) == [row for row in before if row[1] != author]
    assert matches(only_author(selection, author), sent) == [row for row in before if row[1] == author]


@pytest.mark.parametrize(
    ("where", "without", "only"),
    [
        (Author((1, 2, 3)), Author((1, 3)), Author((2,))),
        (All((Author((1, 2)), Since(5))), All((Author((1,)), Since(5))), All((Author((2,)), Since(5)))),
        (Words("spam"), All((Words("spam"), Not(Author((2,))))), All((Author((2,)), Words("spam")))),
        (
            All((FromBot(), Not(Author((4,))))),
            All((FromBot(), Not(Author((4, 2))))),
            All((Author((2,)), FromBot(), Not(Author((4,))))),
        ),
    ],
)
def test_a_narrowed_selection_is_as_short_as_possible(where: Filter, without: Filter, only: Filter) -> None:
    selection = Selection(channel_ids=(1,), where=where, except_ids=(7,))
    narrowed = without_author(selection, 2)
    assert (narrowed.where, narrowed.except_ids) == (without, (7,))
    assert only_author(selection, 2).where == only


def test_a_channel_is_no_longer_named_or_left_out_of_the_others() -> None:
    named = Selection(channel_ids=(1, 2, 3), where=Words("spam"))
    assert without_channel(named, 2).channel_ids == (1, 3)
    guild = Selection(guild_id=5, where=Words("spam"))
    twice = without_channel(without_channel(guild, 2), 3)
    with pytest.raises(BadInput, match="only channel"):
        without_channel(Selection(channel_ids=(1,), where=Author((1,))), 1)
    assert (twice.guild_id, twice.except_channel_ids) == (5, (2, 3))
    assert Selection.from_json(twice.as_json()) == twice


@pytest.mark.parametrize("condition", [JoinedWithin(10), FirstSeenWithin(24), Not(FirstSeenWithin(24))], ids=str)
def test_a_message_is_not_ruled_out_by_when_its_author_joined_or_was_first_seen(condition: Filter) -> None:
    for where in (condition, AnyOf((condition, Author((2,))))):
        assert not rules_out(Selection(channel_ids=(1,), where=where), 1, 5, 3)
    assert rules_out(Selection(channel_ids=(1,), where=All((condition, Author((2,))))), 1, 5, 3)


def test_the_selection_of_an_older_purge_leaves_no_channels_out() -> None:
    stored = Selection(guild_id=5, where=Words("spam")).as_json()
    del stored["except_channels"]
    assert Selection.from_json(stored).except_channel_ids == ()
