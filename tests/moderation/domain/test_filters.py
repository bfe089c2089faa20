"""A filter matches according to its definition, in any combination."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.errors import BadInput
from moderation.domain.filters import (
    All,
    AnyOf,
    Author,
    Before,
    Content,
    Filter,
    FromBot,
    Has,
    Not,
    Pattern,
    Pinned,
    ReplyTo,
    Since,
    Words,
    authors_of,
    columns_of,
    compile_filter,
    filter_as_json,
    filter_from_json,
    id_range_of,
)

BOTS = frozenset({3})

COLUMNS = (
    "message_id",
    "author_id",
    "attachments",
    "content",
    "embeds",
    "mentions",
    "pinned",
    "reference",
    "webhook_id",
)

messages = st.fixed_dictionaries(
    {
        "message_id": st.integers(-20, 20),
        "author_id": st.integers(1, 4),
        "attachments": st.none() | st.lists(st.just("{}"), max_size=1),
        "content": st.none() | st.sampled_from(["", "free nitro", "see https://x.example", "Nitro! https://x.example"]),
        "embeds": st.none() | st.lists(st.just("{}"), max_size=1),
        "mentions": st.none() | st.lists(st.integers(1, 4), max_size=2),
        "pinned": st.none() | st.booleans(),
        "reference": st.none() | st.tuples(st.just(7), st.none() | st.integers(-20, 20)),
        "webhook_id": st.none() | st.just(99),
    }
)

leaves: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Author, st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)),
    st.builds(Since, st.integers(-20, 20)),
    st.builds(Before, st.integers(-20, 20)),
    st.builds(Words, st.just("nitro")),
    st.builds(Pattern, st.just("fre+")),
    st.builds(Has, st.sampled_from(Content)),
    st.just(FromBot()),
    st.just(Pinned()),
    st.builds(ReplyTo, st.integers(-20, 20)),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(All, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=8,
)


def expected_match(where: Filter, message: dict[str, Any]) -> bool:  # noqa: C901, PLR0911
    """Return whether the filter matches the message: the oracle."""
    text = message["content"] or ""
    match where:
        case All(parts):
            return all(expected_match(part, message) for part in parts)
        case AnyOf(parts):
            return any(expected_match(part, message) for part in parts)
        case Not(part):
            return not expected_match(part, message)
        case Author(ids):
            return message["author_id"] in ids
        case Since(first):
            return bool(message["message_id"] >= first)
        case Before(end):
            return bool(message["message_id"] < end)
        case Words(_):
            return "nitro" in text.casefold()
        case Pattern(_):
            return "fre" in text
        case Has(what):
            return "https://" in text if what is Content.LINK else bool(message[f"{what}s"])
        case FromBot():
            return message["author_id"] in BOTS or message["webhook_id"] is not None
        case Pinned():
            return bool(message["pinned"])
        case ReplyTo(other):
            return message["reference"] is not None and message["reference"][1] == other


@given(trees, messages)
def test_a_filter_tree_matches_like_the_oracle(where: Filter, message: dict[str, Any]) -> None:
    columns = ("message_id", "author_id", *sorted(columns_of(where)))
    test = compile_filter(where, columns, bots=BOTS)
    matches = test([message[column] for column in columns])
    assert matches == expected_match(where, message)
    assert filter_from_json(filter_as_json(where)) == where


@given(trees, messages)
def test_matches_are_within_the_id_range_and_by_the_authors(where: Filter, message: dict[str, Any]) -> None:
    if message["reference"] and (message["reference"][1] or -99) >= message["message_id"]:
        return  # A reply is younger than its target.
    if expected_match(where, message):
        first, last = id_range_of(where)
        authors = authors_of(where)
        assert first <= message["message_id"] <= last
        assert authors is None or message["author_id"] in authors


@pytest.mark.parametrize("empty", [lambda: All(()), lambda: AnyOf(()), lambda: Author(()), lambda: Words(" ")])
def test_an_empty_condition_is_refused(empty: Any) -> None:
    with pytest.raises(BadInput):
        empty()
