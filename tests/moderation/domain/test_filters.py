"""A filter matches according to its definition, in any combination."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.errors import BadInput
from chatstore.domain.milliseconds import DAY_MS, HOUR_MS, MINUTE_MS
from chatstore.domain.snowflakes import EPOCH_MS, make_snowflake
from moderation.domain.filter_json import filter_as_json, filter_from_json
from moderation.domain.filters import (
    All,
    AnyOf,
    AnyWord,
    Author,
    Before,
    Content,
    Filter,
    FirstSeenWithin,
    FromBot,
    Has,
    JoinedWithin,
    Not,
    Pattern,
    Pinned,
    ReplyTo,
    Similar,
    Since,
    Words,
    YoungAccount,
    authors_of,
    columns_of,
    compile_filter,
    first_seen_hours,
    id_range_of,
    join_minutes,
)
from moderation.domain.first_seen import FirstSeen

BOTS = frozenset({3})

JOINED = {1: EPOCH_MS - 1, 2: EPOCH_MS - DAY_MS, 3: EPOCH_MS + 1}
"""When authors joined: the ids of messages carry the first millisecond, or the one before."""

FIRST_SEEN = {
    1: FirstSeen(EPOCH_MS - 1, EPOCH_MS - 1),
    2: FirstSeen(EPOCH_MS - DAY_MS, EPOCH_MS - DAY_MS),
    3: FirstSeen(EPOCH_MS - DAY_MS, EPOCH_MS),
}
"""When authors were first seen, or between which times."""

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
    st.builds(AnyWord, st.just("beer nitro")),
    st.builds(Similar, st.just("F r e e nitrooo!")),
    st.builds(YoungAccount, st.integers(1, 4)),
    st.builds(JoinedWithin, st.integers(1, 4)),
    st.builds(FirstSeenWithin, st.integers(1, 4)),
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


def expected_match(  # noqa: C901, PLR0911, PLR0912
    where: Filter, message: dict[str, Any], *, is_negated: bool = False
) -> bool:
    """Return whether the filter matches the message: the oracle."""
    text = message["content"] or ""
    match where:
        case All(parts):
            return all(expected_match(part, message, is_negated=is_negated) for part in parts)
        case AnyOf(parts):
            return any(expected_match(part, message, is_negated=is_negated) for part in parts)
        case Not(part):
            return not expected_match(part, message, is_negated=not is_negated)
        case Author(ids):
            return message["author_id"] in ids
        case Since(first):
            return bool(message["message_id"] >= first)
        case Before(end):
            return bool(message["message_id"] < end)
        case Words(_) | AnyWord(_):
            return "nitro" in text.casefold()
        case Similar(_):
            return text == "free nitro"
        case YoungAccount(_):
            # The ids of this test carry the same day, but those below zero come before their author's.
            return bool(message["message_id"] >= 0)
        case JoinedWithin(_):
            # Author 1 had just joined, author 2 had long ago, author 3 joined later; of author 4 it is not known.
            return bool(message["author_id"] == 1)
        case FirstSeenWithin(_):
            # Author 1 was first seen on that day, author 2 long ago; of author 3 a day is known, of author 4 nothing.
            return bool(message["author_id"] == 1 or (is_negated and message["author_id"] in (3, 4)))
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
    test = compile_filter(where, columns, bots=BOTS, joined=JOINED.get, first_seen=FIRST_SEEN.get)
    matches = test([message[column] for column in columns])
    assert matches == expected_match(where, message)
    assert filter_from_json(filter_as_json(where)) == where
    possible = compile_filter(where, columns, bots=BOTS, joined=JOINED.get, first_seen=None)
    assert possible([message[column] for column in columns]) or not matches


@given(trees, messages)
def test_matches_are_within_the_id_range_and_by_the_authors(where: Filter, message: dict[str, Any]) -> None:
    if message["reference"] and (message["reference"][1] or -99) >= message["message_id"]:
        return  # A reply is younger than its target.
    if expected_match(where, message):
        first, last = id_range_of(where)
        authors = authors_of(where)
        assert first <= message["message_id"] <= last
        assert authors is None or message["author_id"] in authors


@pytest.mark.parametrize(
    ("seconds", "is_within"), [(-1, False), (0, True), (1, True), (600, True), (601, False), (9_000_000, False)]
)
def test_a_message_is_within_minutes_of_joining_up_to_the_last_one(seconds: int, is_within: bool) -> None:
    joined_ms = 1_714_521_600_000
    message = make_snowflake(joined_ms + seconds * 1_000)
    columns = ("message_id", "author_id")
    for known, expected in (({7: joined_ms}, is_within), ({8: joined_ms}, False)):
        test = compile_filter(JoinedWithin(10), columns, bots=BOTS, joined=known.get)
        assert test((message, 7)) is expected
        assert compile_filter(Not(JoinedWithin(10)), columns, bots=BOTS, joined=known.get)((message, 7)) is not expected
    assert compile_filter(JoinedWithin(10), columns, bots=BOTS)((message, 7)) is False


@given(trees)
def test_times_of_joining_are_asked_for_only_if_a_condition_needs_them(where: Filter) -> None:
    assert (join_minutes(where) > 0) == ("JoinedWithin" in repr(where))


@pytest.mark.parametrize(("minutes", "is_within"), [(-1, False), (0, True), (1_440, True), (1_441, False)])
def test_a_message_is_within_hours_of_the_first_one_up_to_the_last(minutes: int, is_within: bool) -> None:
    first_ms = 1_714_521_600_000
    row = make_snowflake(first_ms + minutes * MINUTE_MS), 7
    known = {7: FirstSeen(first_ms, first_ms)}
    test = compile_filter(FirstSeenWithin(24), ("message_id", "author_id"), bots=BOTS, first_seen=known.get)
    assert test(row) is is_within


def test_a_message_is_kept_by_the_condition_and_its_negation_if_its_author_may_have_been_new() -> None:
    first_ms = 1_714_521_600_000
    row = make_snowflake(first_ms + 30 * HOUR_MS), 7
    columns = ("message_id", "author_id")
    for known in ({7: FirstSeen(first_ms, first_ms + 10 * HOUR_MS)}, {}):
        for where in (FirstSeenWithin(24), Not(FirstSeenWithin(24))):
            assert not compile_filter(where, columns, bots=BOTS, first_seen=known.get)(row)
            assert not compile_filter(where, columns, bots=BOTS)(row)
            assert compile_filter(where, columns, bots=BOTS, first_seen=None)(row)
        twice = compile_filter(Not(Not(FirstSeenWithin(24))), columns, bots=BOTS, first_seen=known.get)
        assert not twice(row)


@given(trees)
def test_first_messages_are_asked_for_only_if_a_condition_needs_them(where: Filter) -> None:
    assert bool(first_seen_hours(where)) == ("FirstSeenWithin" in repr(where))


@pytest.mark.parametrize(("hours", "is_young"), [(-1, False), (0, True), (167, True), (168, False), (9_000, False)])
def test_an_account_is_young_if_it_was_when_the_message_was_posted(hours: int, is_young: bool) -> None:
    created_ms = 1_714_521_600_000
    author, message = (make_snowflake(created_ms + passed * HOUR_MS) for passed in (0, hours))
    test = compile_filter(YoungAccount(7), ("message_id", "author_id"), bots=BOTS)
    assert test((message, author)) is is_young


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("Beer, anyone?", True),
        ("GRATIS-nitro", True),
        ("nitroglycerin", False),
        ("click  here", True),
        ("here, click", False),
        ("пиво!", True),
        ("пивовар", False),
        ("これはビールです", True),
        (None, False),
    ],
)
def test_any_word_is_found_as_a_whole_word(text: str | None, matches: bool) -> None:
    test = compile_filter(AnyWord('beer nitro "click here" ПИВО ビール'), ("content",), bots=BOTS)
    assert test((text,)) is matches


@pytest.mark.parametrize(
    ("words", "content", "found"),
    [
        ("free coins", "ＦＲＥＥ  𝐂𝐨𝐢𝐧𝐬 here", True),
        ("ＦＲＥＥ", "free coins", True),
        ("ＦＲＥＥ", "ＦＲＥＥ coins", True),
        ("free", "ｆｒｅｅｄｏｍ", False),
        ("free coins", "ＦＲＥＥ coin", False),
        ("free", "Free™ ⓒⓞⓘⓝⓢ", True),
        ("free ⓒⓞⓘⓝⓢ", "free coins", True),
        ("10", "only １０ left", True),
    ],
)
def test_words_are_found_in_any_style_of_letters(words: str, content: str, found: bool) -> None:
    assert compile_filter(Words(words), ("content",), bots=BOTS)((content,)) is found
    assert compile_filter(AnyWord(f'"{words}" beer'), ("content",), bots=BOTS)((content,)) is found


@pytest.mark.parametrize(
    ("stored", "where"),
    [
        (
            {"all": [{"author": ["7"]}, {"since": "5"}, {"not": {"before": "9"}}]},
            All((Author((7,)), Since(5), Not(Before(9)))),
        ),
        (
            {"any": [{"words": "a"}, {"pattern": "ab+"}, {"has": "link"}, {"bot": True}, {"pinned": True}]},
            AnyOf((Words("a"), Pattern("ab+"), Has(Content.LINK), FromBot(), Pinned())),
        ),
        ({"reply_to": "8"}, ReplyTo(8)),
        (
            {"all": [{"first_seen_hours": 24}, {"author": ["7"]}]},
            All((FirstSeenWithin(24), Author((7,)))),
        ),
        (
            {"any": [{"any_word": "a b"}, {"similar": "a\nb"}, {"account_days": 7}, {"joined_minutes": 10}]},
            AnyOf((AnyWord("a b"), Similar("a\nb"), YoungAccount(7), JoinedWithin(10))),
        ),
    ],
)
def test_the_filters_of_stored_purges_are_read(stored: dict[str, Any], where: Filter) -> None:
    assert filter_from_json(stored) == where


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: YoungAccount(0),
        lambda: YoungAccount(10**6),
        lambda: JoinedWithin(0),
        lambda: JoinedWithin(43_201),
        lambda: FirstSeenWithin(0),
        lambda: FirstSeenWithin(8_761),
        lambda: Similar("a" * 5_000),
    ],
)
def test_a_condition_out_of_bounds_is_refused(wrong: Any) -> None:
    with pytest.raises(BadInput):
        wrong()


@pytest.mark.parametrize(
    "empty", [lambda: All(()), lambda: AnyOf(()), lambda: Author(()), lambda: Words(" "), lambda: Similar(" ")]
)
def test_an_empty_condition_is_refused(empty: Any) -> None:
    with pytest.raises(BadInput):
        empty()
