"""Selections in words, translated: "all messages by Victor in #general, except pinned"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy, ngettext, npgettext, pgettext

from chatstore.domain.snowflakes import time_of
from moderation.domain.filters import (
    MAX_NAMED_AUTHORS,
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
)
from moderation.domain.patterns import single_phrase
from moderation.domain.selection import Selection
from moderation.presentation.formats import format_deadline, format_long_day, format_number, join_list
from moderation.presentation.people import name_unknown

Names = Mapping[int, str]
"""Chat users' names by ID. A user without one is shown by ID."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The place of a selection: some channels, by name, all channels of a guild, or all channels.

    kept: the names of channels that are left out of the latter two. within: the guilds and channels that the roles of
    the moderator restrict those to; empty for all guilds, without direct messages; None for no restriction.
    """

    channels: Sequence[str] = ()
    guild: str = ""
    kept: Sequence[str] = ()
    within: Sequence[str] | None = None


MAX_NAMED_CHANNELS = 3
"""With more channels, a summary gives their number."""

MAX_QUOTED_CHARACTERS = 80
"""Of a text to compare messages with."""

_HAS = {
    Content.LINK: gettext_lazy("containing a link"),
    Content.ATTACHMENT: gettext_lazy("with an attachment"),
    Content.EMBED: gettext_lazy("with an embed"),
    Content.MENTION: gettext_lazy("mentioning someone"),
}


def count_messages(number: int) -> str:
    """Return "1 message" or "1,204 messages"."""
    return ngettext("%(count)s message", "%(count)s messages", number) % {"count": format_number(number)}


def summarize_selection(selection: Selection, *, scope: Scope, authors: Names, count: int = 0) -> str:
    """Describe a selection, in lower case. count: of the messages found, in place of "all messages"; 0 if unknown."""
    place = format_scope(scope)
    if selection.message_ids:
        chosen = len(selection.message_ids) - len(selection.except_ids)
        selected = ngettext("%(count)s selected message %(place)s", "%(count)s selected messages %(place)s", chosen)
        return selected % {"count": format_number(chosen), "place": place}
    if selection.where is None:
        text = gettext("the whole channel %(channel)s") % {"channel": ", ".join(scope.channels)}
        if count:
            text = gettext("%(messages)s: %(selection)s") % {"messages": count_messages(count), "selection": text}
    else:
        text = count_messages(count) if count else gettext("all messages")
        for condition in _format_parts(selection.where, place, authors):
            text = pgettext("selection", "%(messages)s %(condition)s") % {"messages": text, "condition": condition}
        if selection.keeps_pinned:
            text = gettext("%(messages)s, except pinned") % {"messages": text}
        elif selection.includes_pinned:
            text = gettext("%(messages)s, including pinned") % {"messages": text}
    excluded = len(selection.except_ids)
    if not excluded:
        return text
    without = ngettext("%(messages)s, %(count)s excluded", "%(messages)s, %(count)s excluded", excluded)
    return without % {"messages": text, "count": format_number(excluded)}


def format_scope(scope: Scope) -> str:
    """Return a scope as part of a selection: "in #general", "in 12 channels", "in all channels of Gophers"."""
    if scope.channels:
        return pgettext("scope of a selection", "in %(channels)s") % {"channels": _list_channels(scope.channels)}
    if scope.within is not None:
        place = _format_within(scope.within)
    elif scope.guild:
        place = pgettext("scope of a selection", "in all channels of %(guild)s") % {"guild": scope.guild}
    else:
        place = pgettext("scope of a selection", "in all channels")
    if not scope.kept:
        return place
    text = pgettext("scope of a selection", "%(place)s but %(channels)s")
    return text % {"place": place, "channels": _list_channels(scope.kept)}


def _format_within(places: Sequence[str]) -> str:
    """Return where a moderator's roles restrict a purge to: "in all of Gophers and #rust (Crabs)"."""
    if not places:
        return pgettext("scope of a selection", "in all channels but direct messages")
    if len(places) > MAX_NAMED_CHANNELS:
        count = len(places)
        text = npgettext("scope of a selection", "in %(count)s place", "in %(count)s servers and channels", count)
        return text % {"count": format_number(count)}
    return pgettext("scope of a selection", "in all of %(places)s") % {"places": _list_channels(places)}


def _list_channels(names: Sequence[str]) -> str:
    """Return "#a", "#a and #b", "#a, #b and #c", or "4 channels"."""
    count = len(names)
    if count > MAX_NAMED_CHANNELS:
        text = npgettext("channels of a selection", "%(count)s channel", "%(count)s channels", count)
        return text % {"count": format_number(count)}
    text = (
        pgettext("channels of a selection", "%(first)s"),
        pgettext("channels of a selection", "%(first)s and %(second)s"),
        pgettext("channels of a selection", "%(first)s, %(second)s and %(third)s"),
    )[count - 1]
    return text % dict(zip(("first", "second", "third"), names, strict=False))


def _format_parts(where: Filter, place: str, authors: Names) -> Iterable[str]:
    """Yield conditions on authors as one, place and time, then the other conditions as one."""
    parts = where.parts if isinstance(where, All) else (where,)
    who = [part for part in parts if isinstance(part, Author | FromBot)]
    when = [part for part in parts if isinstance(part, Since | Before)]
    rest = [part for part in parts if part not in (*who, *when)]
    if who:
        yield join_list([_format(part, authors) for part in who])
    yield place
    yield from (_format(part, authors) for part in when)
    if rest:
        yield _join_all([_format(part, authors, inner=len(rest) > 1) for part in rest], rest)


def _format(where: Filter, authors: Names, *, inner: bool = False) -> str:  # noqa: C901, PLR0911, PLR0912
    match where:
        case Author(ids):
            return _format_authors(ids, authors)
        case Since(message_id):
            return gettext("since %(time)s") % {"time": format_datetime(message_id)}
        case Before(message_id):
            return gettext("before %(time)s") % {"time": format_datetime(message_id)}
        case Words(text) | AnyWord(text) if phrase := single_phrase(text):
            return gettext("containing the phrase “%(text)s”") % {"text": phrase}
        case Words(text):
            text_of = ngettext("containing the word “%(text)s”", "containing the words “%(text)s”", len(text.split()))
            return text_of % {"text": text}
        case AnyWord(text):
            if len(text.split()) == 1:
                return gettext("containing the word “%(text)s”") % {"text": text}
            return gettext("containing any of the words “%(text)s”") % {"text": text}
        case Similar(text):
            return gettext("with nearly the same text as “%(text)s”") % {"text": _shorten(text)}
        case YoungAccount(days):
            text = ngettext(
                "posted when the account was younger than %(count)s day",
                "posted when the account was younger than %(count)s days",
                days,
            )
            return text % {"count": format_number(days)}
        case JoinedWithin(minutes):
            text = ngettext(
                "posted within %(count)s minute of joining", "posted within %(count)s minutes of joining", minutes
            )
            return text % {"count": format_number(minutes)}
        case FirstSeenWithin(hours):
            text = ngettext(
                "posted within %(count)s hour of the author’s first message anywhere",
                "posted within %(count)s hours of the author’s first message anywhere",
                hours,
            )
            return text % {"count": format_number(hours)}
        case Pattern(expression):
            return gettext("matching /%(pattern)s/") % {"pattern": expression}
        case Has(what):
            return str(_HAS[what])
        case FromBot():
            return gettext("by bots")
        case Pinned():
            return gettext("that are pinned")
        case ReplyTo(message_id):
            return gettext("replying to message %(id)s") % {"id": message_id}
        case Not(Pinned()):
            return gettext("that are not pinned")
        case Not(Author(ids)) if len(ids) > MAX_NAMED_AUTHORS:
            text = ngettext("not by any of %(count)s user", "not by any of %(count)s users", len(ids))
            return text % {"count": format_number(len(ids))}
        case Not(part):
            return gettext("not %(condition)s") % {"condition": _format(part, authors, inner=True)}
        case All(parts):
            text = _join_all([_format(part, authors, inner=True) for part in parts], parts)
            return _bracket(text, parts, inner=inner)
        case AnyOf(parts):
            text = _join_any([_format(part, authors, inner=True) for part in parts], parts)
            return _bracket(text, parts, inner=inner)


def _shorten(text: str) -> str:
    """Return a text in one line, with an ellipsis if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_QUOTED_CHARACTERS else f"{line[:MAX_QUOTED_CHARACTERS].rstrip()}…"


def _format_authors(ids: Sequence[int], authors: Names) -> str:
    if len(ids) > MAX_NAMED_AUTHORS:
        text = ngettext("by %(count)s user", "by %(count)s users", len(ids))
        return text % {"count": format_number(len(ids))}
    return gettext("by %(authors)s") % {"authors": name_authors(ids, authors)}


def _bracket(text: str, parts: Sequence[Filter], *, inner: bool) -> str:
    return pgettext("conditions", "(%(conditions)s)") % {"conditions": text} if inner and len(parts) > 1 else text


def _join_all(text: Sequence[str], parts: Sequence[Filter]) -> str:
    return _join(text, pgettext("conditions", "%(left)s and %(right)s"), parts)


def _join_any(text: Sequence[str], parts: Sequence[Filter] = ()) -> str:
    return _join(text, pgettext("conditions", "%(left)s or %(right)s"), parts)


def _join(text: Sequence[str], pattern: str, parts: Sequence[Filter]) -> str:
    """Join with commas, and with the pattern before the last: "a, b or c"; with nothing but it if parts are bracketed.

    parts: the conditions that are joined, if they can be.
    """
    *left, right = text
    if any(isinstance(part, All | AnyOf) and len(part.parts) > 1 for part in parts):
        return reduce(lambda before, after: pattern % {"left": before, "right": after}, text)
    return pattern % {"left": join_list(left), "right": right} if left else right


def name_authors(ids: Iterable[int], authors: Names) -> str:
    """Return the authors' names: "Victor, Wilma or user 8"."""
    return _join_any([authors.get(i) or name_unknown(i) for i in ids])


def format_datetime(snowflake: int) -> str:
    """Format the time that an ID carries, in the viewer's time zone: "1 May 2024", with the time unless midnight."""
    time = timezone.localtime(time_of(snowflake))
    if (time.hour, time.minute, time.second) == (0, 0, 0):
        return format_long_day(time)
    return format_deadline(time)
