"""Conditions that select messages for a purge, combined by all, any and not.

A filter is a tree of values. It provides the columns it reads, the id range and the authors of possible matches, and
a test for rows. No filter matches everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from chatstore.domain.errors import BadInput
from chatstore.domain.milliseconds import DAY_MS, MINUTE_MS
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, ms_of
from chatstore.domain.texts import gettext_lazy as _
from moderation.domain.first_seen import FirstSeenOf, first_seen_unknown
from moderation.domain.patterns import (
    check_text,
    compile_any_word,
    compile_pattern,
    compile_words,
    plain_letters,
)
from moderation.domain.similarity import MAX_TEXT_CHARACTERS, compare_with

Row = Sequence[Any]
"""message_id, author_id, and the filter's columns in the requested order."""

Test = Callable[[Row], bool]

MAX_AUTHORS = 1_000
MAX_CONDITIONS = 100
MAX_ACCOUNT_DAYS = 3_650
MAX_JOINED_MINUTES = 43_200
"""Thirty days."""

MAX_FIRST_SEEN_HOURS = 8_760
"""A year."""


JoinedAt = Callable[[int], int | None]
"""The time (Unix ms) at which an author last joined the guild of the rows; None if it is not known."""


def joins_unknown(_author_id: int) -> None:
    """Return None for every author, as in direct messages, which have no guild."""


class Content(StrEnum):
    """Kinds of content that a message can have."""

    LINK = "link"
    ATTACHMENT = "attachment"
    EMBED = "embed"
    MENTION = "mention"


@dataclass(frozen=True, slots=True)
class Author:
    """Written by one of these authors."""

    ids: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.ids:
            raise BadInput(_("Enter at least one author."))
        if len(self.ids) > MAX_AUTHORS:
            raise BadInput(_("Too many authors. Select at most %(count)s at a time.", count=MAX_AUTHORS))


@dataclass(frozen=True, slots=True)
class Since:
    """This id or a later one."""

    message_id: int


@dataclass(frozen=True, slots=True)
class Before:
    """A lower id than this."""

    message_id: int


@dataclass(frozen=True, slots=True)
class Words:
    """All of the words, as whole words, in any order, case and style of letters. A quoted phrase counts as one word."""

    text: str

    def __post_init__(self) -> None:
        compile_words(self.text)


@dataclass(frozen=True, slots=True)
class AnyWord:
    """At least one of the words, as a whole word, in any case and style of letters.

    A quoted phrase counts as one word.
    """

    text: str

    def __post_init__(self) -> None:
        compile_any_word(self.text)


@dataclass(frozen=True, slots=True)
class Similar:
    """The same text as this one, or nearly so, as in a raid; see `compare_with`."""

    text: str

    def __post_init__(self) -> None:
        check_text(self.text, MAX_TEXT_CHARACTERS)


@dataclass(frozen=True, slots=True)
class YoungAccount:
    """Written less than this many days after the author's account was created.

    Both times are in the ids. A message that is older than its author's id, as an import may contain, does not match.
    """

    days: int

    def __post_init__(self) -> None:
        if not 1 <= self.days <= MAX_ACCOUNT_DAYS:
            raise BadInput(_("Enter an account’s age as a number of days from 1 to %(most)s.", most=MAX_ACCOUNT_DAYS))


@dataclass(frozen=True, slots=True)
class JoinedWithin:
    """Written at most this many minutes after the author last joined the guild.

    What was written before that, or if it is not known when they joined, does not match.
    """

    minutes: int

    def __post_init__(self) -> None:
        if not 1 <= self.minutes <= MAX_JOINED_MINUTES:
            raise BadInput(
                _("Enter the time since joining as a number of minutes from 1 to %(most)s.", most=MAX_JOINED_MINUTES)
            )


@dataclass(frozen=True, slots=True)
class FirstSeenWithin:
    """Written at most this many hours after the author's first message, in any channel of the store.

    Where that is not known exactly, the condition and its negation are both decided so that the message is kept:
    neither matches what may not fit.
    """

    hours: int

    def __post_init__(self) -> None:
        if not 1 <= self.hours <= MAX_FIRST_SEEN_HOURS:
            raise BadInput(
                _(
                    "Enter the time since the first message as a number of hours from 1 to %(most)s.",
                    most=MAX_FIRST_SEEN_HOURS,
                )
            )


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that matches somewhere in the text (RE2's syntax)."""

    expression: str

    def __post_init__(self) -> None:
        compile_pattern(self.expression)


@dataclass(frozen=True, slots=True)
class Has:
    """Has a link, an attachment, an embed, or a user mention."""

    what: Content


@dataclass(frozen=True, slots=True)
class FromBot:
    """Written by a bot account or through a webhook."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """Pinned in its channel."""


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """Reply to this message, or a forward of it."""

    message_id: int


@dataclass(frozen=True, slots=True)
class All:
    """Every part matches."""

    parts: tuple[Filter, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of the parts matches."""

    parts: tuple[Filter, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not match."""

    part: Filter


Filter = (
    Author
    | Since
    | Before
    | Words
    | AnyWord
    | Similar
    | YoungAccount
    | JoinedWithin
    | FirstSeenWithin
    | Pattern
    | Has
    | FromBot
    | Pinned
    | ReplyTo
    | All
    | AnyOf
    | Not
)


def _check_parts(parts: Collection[Filter]) -> None:
    if not parts:
        raise BadInput(_("Nothing is selected. Add at least one condition."))
    if len(parts) > MAX_CONDITIONS:
        raise BadInput(_("Too many conditions. Use at most %(count)s at a time.", count=MAX_CONDITIONS))


def columns_of(where: Filter) -> frozenset[str]:
    """Return the message columns that a filter reads, besides id and author."""
    match where:
        case Words() | AnyWord() | Similar() | Pattern() | Has(Content.LINK):
            return frozenset({"content"})
        case Has(what):
            return frozenset({f"{what}s"})
        case FromBot():
            return frozenset({"webhook_id"})
        case Pinned():
            return frozenset({"pinned"})
        case ReplyTo():
            return frozenset({"reference"})
        case Not(part):
            return columns_of(part)
        case All(parts) | AnyOf(parts):
            return frozenset().union(*map(columns_of, parts))
        case Author() | YoungAccount() | JoinedWithin() | FirstSeenWithin() | Since() | Before():
            return frozenset()


def id_range_of(where: Filter) -> tuple[int, int]:
    """Return the lowest and the highest id that can match. If none can, the first is above the second."""
    match where:
        case Since(message_id):
            return message_id, MAX_ID
        case Before(message_id):
            return MIN_ID, message_id - 1
        case ReplyTo(message_id):
            # A reply has a higher id than the message it replies to.
            return message_id, MAX_ID
        case All(parts):
            ranges = list(map(id_range_of, parts))
            return max(first for first, _ in ranges), min(last for _, last in ranges)
        case AnyOf(parts):
            ranges = [id_range for id_range in map(id_range_of, parts) if id_range[0] <= id_range[1]]
            return min((first for first, _ in ranges), default=1), max((last for _, last in ranges), default=0)
        case Author() | YoungAccount() | JoinedWithin() | FirstSeenWithin() | FromBot() | Pinned() | Not():
            return MIN_ID, MAX_ID
        case Words() | AnyWord() | Similar() | Pattern() | Has():
            return MIN_ID, MAX_ID


def authors_of(where: Filter) -> frozenset[int] | None:
    """Return the only possible authors of matching messages, or None if any author can match."""
    match where:
        case Author(ids):
            return frozenset(ids)
        case All(parts):
            known = [authors for authors in map(authors_of, parts) if authors is not None]
            return frozenset.intersection(*known) if known else None
        case AnyOf(parts):
            found = [authors_of(part) for part in parts]
            return None if None in found else frozenset().union(*(authors for authors in found if authors is not None))
        case Since() | Before() | YoungAccount() | JoinedWithin() | FirstSeenWithin() | FromBot() | Pinned() | Not():
            return None
        case Words() | AnyWord() | Similar() | Pattern() | Has() | ReplyTo():
            return None


MAX_NAMED_AUTHORS = 3
"""With more authors in a condition, a summary gives their number."""


def named_authors(where: Filter) -> frozenset[int]:
    """Return the ids of the authors that a summary names, for looking up their names."""
    match where:
        case Author(ids):
            return frozenset(ids) if len(ids) <= MAX_NAMED_AUTHORS else frozenset()
        case Not(part):
            return named_authors(part)
        case All(parts) | AnyOf(parts):
            return frozenset().union(*map(named_authors, parts))
        case Since() | Before() | YoungAccount() | JoinedWithin() | FirstSeenWithin() | FromBot() | Pinned():
            return frozenset()
        case Words() | AnyWord() | Similar() | Pattern() | Has() | ReplyTo():
            return frozenset()


def join_minutes(where: Filter) -> int:
    """Return the most minutes after joining that a filter has a condition on; 0 without such a condition."""
    match where:
        case JoinedWithin(minutes):
            return minutes
        case Not(part):
            return join_minutes(part)
        case All(parts) | AnyOf(parts):
            return max(map(join_minutes, parts))
    return 0


def first_seen_hours(where: Filter) -> frozenset[int]:
    """Return the hours after an author's first message that a filter has conditions on."""
    match where:
        case FirstSeenWithin(hours):
            return frozenset({hours})
        case Not(part):
            return first_seen_hours(part)
        case All(parts) | AnyOf(parts):
            return frozenset().union(*map(first_seen_hours, parts))
    return frozenset()


def compile_filter(  # noqa: C901, PLR0911, PLR0912
    where: Filter,
    columns: Sequence[str],
    *,
    bots: frozenset[int],
    joined: JoinedAt = joins_unknown,
    first_seen: FirstSeenOf | None = first_seen_unknown,
    negated: bool = False,
) -> Test:
    """Return a test for rows whose values are in the order of `columns`.

    bots: ids of bot accounts. joined: for the guild of the rows; called only if `join_minutes` is not 0. first_seen:
    called only if there are `first_seen_hours`; None: the test finds all rows that could match, whenever their authors
    were first seen. negated: the filter is the inner part of an odd number of `Not`.
    """
    compile_part = partial(compile_filter, columns=columns, bots=bots, joined=joined, first_seen=first_seen)

    def at(column: str) -> int:
        return columns.index(column)

    match where:
        case Author(ids):
            author, authors = at("author_id"), frozenset(ids)
            return lambda row: row[author] in authors
        case Since(first):
            place = at("message_id")
            return lambda row: bool(row[place] >= first)
        case Before(end):
            place = at("message_id")
            return lambda row: bool(row[place] < end)
        case Words(text):
            return _search_words(at("content"), compile_words(text))
        case AnyWord(text):
            return _search_words(at("content"), [compile_any_word(text)])
        case Similar(text):
            place, is_alike = at("content"), compare_with(text)
            return lambda row: bool(row[place]) and is_alike(row[place])
        case YoungAccount(days):
            message, author, limit = at("message_id"), at("author_id"), days * DAY_MS
            return lambda row: 0 <= ms_of(row[message]) - ms_of(row[author]) < limit
        case JoinedWithin(minutes):
            return _joined_within(at("message_id"), at("author_id"), minutes * MINUTE_MS, joined)
        case FirstSeenWithin(hours):
            return _first_seen_within(at("message_id"), at("author_id"), hours, first_seen, negated=negated)
        case Pattern(expression):
            return _search(at("content"), [compile_pattern(expression)])
        case Has(Content.LINK):
            return _search(at("content"), [compile_pattern(r"(?i)https?://\S")])
        case Has(what):
            place = at(f"{what}s")
            return lambda row: bool(row[place])
        case FromBot():
            author, webhook = at("author_id"), at("webhook_id")
            return lambda row: row[webhook] is not None or row[author] in bots
        case Pinned():
            place = at("pinned")
            return lambda row: bool(row[place])
        case ReplyTo(message_id):
            place = at("reference")
            return lambda row: row[place] is not None and row[place][1] == message_id
        case Not(part):
            inner = compile_part(part, negated=not negated)
            return lambda row: not inner(row)
        case All(parts):
            return _all_of([compile_part(part, negated=negated) for part in parts])
        case AnyOf(parts):
            return _any_of([compile_part(part, negated=negated) for part in parts])


def _joined_within(message: int, author: int, limit: int, joined: JoinedAt) -> Test:
    def test(row: Row) -> bool:
        joined_ms = joined(row[author])
        return joined_ms is not None and 0 <= ms_of(row[message]) - joined_ms <= limit

    return test


def _first_seen_within(message: int, author: int, hours: int, first_seen: FirstSeenOf | None, *, negated: bool) -> Test:
    if first_seen is None:
        return lambda _row: not negated

    def is_within(row: Row) -> bool:
        seen = first_seen(row[author])
        return seen is not None and seen.is_within(ms_of(row[message]), hours)

    def may_be_within(row: Row) -> bool:
        seen = first_seen(row[author])
        return seen is None or seen.may_be_within(ms_of(row[message]), hours)

    # What a negation excludes is kept.
    return may_be_within if negated else is_within


def _search(place: int, expressions: Sequence[Any]) -> Test:
    searches = [expression.search for expression in expressions]

    def test(row: Row) -> bool:
        text = row[place]
        return bool(text) and all(search(text) is not None for search in searches)

    return test


def _search_words(place: int, expressions: Sequence[Any]) -> Test:
    searches = [expression.search for expression in expressions]

    def test(row: Row) -> bool:
        text = row[place]
        if not text:
            return False
        plain = plain_letters(text)
        if plain == text:
            return all(search(text) is not None for search in searches)
        # Both: in plain letters, "Free™" is "FreeTM".
        return all(search(text) is not None or search(plain) is not None for search in searches)

    return test


def _all_of(tests: Sequence[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        # Author and time is the most common combination, tested against millions of rows.
        first, second = tests
        return lambda row: first(row) and second(row)
    return lambda row: all(test(row) for test in tests)


def _any_of(tests: Sequence[Test]) -> Test:
    return lambda row: any(test(row) for test in tests)
