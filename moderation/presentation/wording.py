"""A selection as a sentence's object: "everything by Victor in #general since 1 May 2024, pinned kept"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chatstore.domain.snowflakes import time_of
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
)
from moderation.domain.selection import Selection

Names = Mapping[int, str]
"""Chat users' names by id; an unknown one is shown by its id."""

_HAS = {
    Content.LINK: "containing a link",
    Content.ATTACHMENT: "with an attachment",
    Content.EMBED: "with an embed",
    Content.MENTION: "mentioning somebody",
}


def say_selection(selection: Selection, *, place: str, authors: Names) -> str:
    """The selection in words. place: where, as shown: "in #general", "in 12 channels", "in every channel"."""
    if selection.message_ids:
        count = len(selection.message_ids) - len(selection.except_ids)
        return f"{count:,} ticked {'message' if count == 1 else 'messages'} {place}"
    if selection.where is None:
        words = f"the whole channel {place.removeprefix('in ')}"
    else:
        words = " ".join(["everything", *_say_parts(selection.where, place, authors)])
        if selection.keeps_pinned:
            words += ", pinned kept"
    left = len(selection.except_ids)
    return f"{words}, {left:,} unticked" if left else words


def _say_parts(where: Filter, place: str, authors: Names) -> Iterable[str]:
    """Who, where, when, and then the rest: the order in which people say it."""
    parts = where.parts if isinstance(where, All) else (where,)
    whose = [part for part in parts if isinstance(part, Author | FromBot)]
    when = [part for part in parts if isinstance(part, Since | Before)]
    rest = [part for part in parts if not isinstance(part, Author | FromBot | Since | Before)]
    yield from (_say(part, authors) for part in whose)
    yield place
    yield from (_say(part, authors) for part in when)
    if rest:
        yield " and ".join(_say(part, authors, inner=len(rest) > 1) for part in rest)


def _say(where: Filter, authors: Names, *, inner: bool = False) -> str:  # noqa: C901, PLR0911
    match where:
        case Author(ids):
            return "by " + " or ".join(authors.get(i, f"user {i}") for i in ids)
        case Since(message_id):
            return f"since {say_moment(message_id)}"
        case Before(message_id):
            return f"before {say_moment(message_id)}"
        case Words(text):
            return f"saying “{text}”"
        case Pattern(expression):
            return f"matching /{expression}/"
        case Has(what):
            return _HAS[what]
        case FromBot():
            return "by bots"
        case Pinned():
            return "that is pinned"
        case ReplyTo(message_id):
            return f"replying to message {message_id}"
        case Not(part):
            return f"not {_say(part, authors, inner=True)}"
        case All(parts):
            return _join(" and ", parts, authors, inner=inner)
        case AnyOf(parts):
            return _join(" or ", parts, authors, inner=inner)


def _join(word: str, parts: tuple[Filter, ...], authors: Names, *, inner: bool) -> str:
    said = word.join(_say(part, authors, inner=True) for part in parts)
    return f"({said})" if inner and len(parts) > 1 else said


def say_moment(snowflake: int) -> str:
    """When an id was made: "1 May 2024", with the time where it is not midnight (UTC)."""
    moment = time_of(snowflake)
    day = f"{moment.day} {moment:%B %Y}"
    return day if (moment.hour, moment.minute, moment.second) == (0, 0, 0) else f"{day}, {moment:%H:%M} UTC"
