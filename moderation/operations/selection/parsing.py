"""Conversion of what a moderator typed or selected into a selection."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import parse_snowflake, time_of
from chatstore.domain.texts import Text
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.chat import ChannelQuerySet
from chatstore.models.names import find_by_name
from chatstore.operations.rights import scope_for
from chatstore.store import messages
from moderation.domain.datetimes import first_id_from, parse_datetime
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
)
from moderation.domain.links import find_message_link
from moderation.domain.selection import Selection
from moderation.domain.similarity import MAX_TEXT_CHARACTERS
from moderation.operations.access.visibility import ADD_PURGE, Actor, guilds_with_channels, visible_channels
from moderation.presentation.typed_dates import type_time

MAX_NAMES = 100
"""Maximum number of authors or channels in one field: a raid has fifty accounts and more."""

MAX_CANDIDATES = 8
"""Users or channels of one name that are offered."""

MAX_OF_ONE_NAME = 300
"""Of them that are read to find the ones to offer."""

MAX_DIGITS = 9
"""Of a number; the limits of every condition are lower."""


class AmbiguousName(BadInput):
    """A name that several users or channels have, or none, although some have a similar one.

    question: the message of a page that offers the candidates. name: as typed. everyone: all of them, at most
    `MAX_OF_ONE_NAME`; has_more: there are others. is_of_channels: they are channels, not users.
    """

    def __init__(
        self, text: Text, *, question: Text, name: str, candidates: Sequence[ChatUser] | Sequence[Channel]
    ) -> None:
        super().__init__(text)
        self.question = question if candidates else text
        self.name = name
        self.everyone = candidates[:MAX_OF_ONE_NAME]
        self.has_more = len(candidates) > MAX_OF_ONE_NAME
        self.is_of_channels = bool(candidates) and isinstance(candidates[0], Channel)

    @property
    def candidates(self) -> Sequence[ChatUser] | Sequence[Channel]:
        """The first `MAX_CANDIDATES`, by name."""
        return self.everyone[:MAX_CANDIDATES]


@dataclass(frozen=True, slots=True)
class Terms:
    """One group of conditions as typed; empty fields are no conditions.

    authors: names or ids, separated by commas; matches any of them. after, before: dates or times; after is
    inclusive. similar: a text, or a link to a message. account_days, joined_minutes, first_seen_hours: numbers.
    has: of `Content`. reply_to: a message's id.
    """

    authors: str = ""
    after: str = ""
    before: str = ""
    words: str = ""
    any_words: str = ""
    similar: str = ""
    account_days: str = ""
    joined_minutes: str = ""
    first_seen_hours: str = ""
    pattern: str = ""
    has: Sequence[str] = ()
    bots: bool = False
    pinned: bool = False
    reply_to: str = ""


@dataclass(frozen=True, slots=True)
class Description:
    """Selection as typed: matches all of `all`, any of `either`, and none of `none`.

    channels, except_channels: names or ids, separated by commas. guild: a name or an id. everything: the whole of the
    one channel, whose name is typed as a confirmation.
    """

    channels: str = ""
    except_channels: str = ""
    guild: str = ""
    all: Terms = Terms()
    either: Terms = Terms()
    none: Terms = Terms()
    with_pinned: bool = False
    everything: bool = False
    channel_name: str = ""


def select_messages(channel_id: int, message_ids: Sequence[str]) -> Selection:
    """Return a selection of individual messages of a channel.

    Raises `BadInput` if there are none or an id is invalid.
    """
    ids = sorted({parse_snowflake(text) for text in message_ids})
    if not ids:
        raise BadInput(_("No messages selected. Select the messages to delete."))
    return Selection(channel_ids=(channel_id,), message_ids=tuple(ids))


def parse_selection(description: Description, *, user: Actor, now: dt.datetime) -> Selection:
    """Return the described selection.

    Raises `BadInput` for names that are unknown or ambiguous, and if there are no conditions.
    """
    channels = visible_channels(user, ADD_PURGE)
    guild = description.guild.strip()
    guild_id = find_guild(guild, guilds_with_channels(user, ADD_PURGE)).pk if guild else None
    if guild_id is not None:
        channels = channels.filter(guild_id=guild_id)
    named = [find_channel(name, channels) for name in split_names(description.channels)]
    kept = [find_channel(name, channels) for name in split_names(description.except_channels)]
    where = _combine(description, user=user, now=now)
    if description.everything and where is None:
        _check_name(named, description.channel_name)
    selection = Selection(
        channel_ids=tuple(channel.pk for channel in named),
        guild_id=None if named else guild_id,
        where=where,
        with_pinned=description.with_pinned,
        everything=description.everything,
        except_channel_ids=tuple(channel.pk for channel in kept),
    )
    return selection.limited_to(scope_for(user, ADD_PURGE))


def describe_conditions(selection: Selection) -> Description | None:
    """Return a description from which `parse_selection` makes the selection's place and conditions.

    None for messages that were selected one by one, for a whole channel, and for a combination of conditions that
    cannot be typed. Excluded messages are left out.
    """
    if selection.where is None:
        return None
    groups: dict[str, dict[str, Any]] = {"all": {}, "either": {}, "none": {}}
    parts = selection.where.parts if isinstance(selection.where, All) else (selection.where,)
    for part in parts:
        if isinstance(part, AnyOf):
            is_typed = not groups["either"] and all(_add_term(groups["either"], one) for one in part.parts)
        elif isinstance(part, Not):
            is_typed = _add_term(groups["none"], part.part)
        else:
            # A single alternative is stored like a condition of its own.
            is_typed = _add_term(groups["all"], part) or (not groups["either"] and _add_term(groups["either"], part))
        if not is_typed:
            return None
    return Description(
        channels=", ".join(map(str, selection.channel_ids)),
        except_channels=", ".join(map(str, selection.except_channel_ids)),
        guild="" if selection.guild_id is None else str(selection.guild_id),
        all=Terms(**groups["all"]),
        either=Terms(**groups["either"]),
        none=Terms(**groups["none"]),
        with_pinned=selection.with_pinned,
    )


def _add_term(terms: dict[str, Any], condition: Filter) -> bool:
    """Add a condition to a group; return whether that was possible: each kind but `Has` is possible once."""
    name, value = _as_typed(condition)
    if name == "has":
        terms["has"] = (*terms.get("has", ()), value)
        return True
    if not name or name in terms:
        return False
    terms[name] = value
    return True


def _as_typed(condition: Filter) -> tuple[str, Any]:  # noqa: C901, PLR0911, PLR0912
    """Return the field of a condition and what is typed there; an empty name if it has none."""
    match condition:
        case Author(ids):
            return "authors", ", ".join(map(_name_or_id, ids))
        case Since(message_id):
            return "after", type_time(time_of(message_id))
        case Before(message_id):
            return "before", type_time(time_of(message_id))
        case Words(text):
            return "words", text
        case AnyWord(text):
            return "any_words", text
        case Similar(text):
            return "similar", text
        case YoungAccount(days):
            return "account_days", str(days)
        case JoinedWithin(minutes):
            return "joined_minutes", str(minutes)
        case FirstSeenWithin(hours):
            return "first_seen_hours", str(hours)
        case Pattern(expression):
            return "pattern", expression
        case Has(what):
            return "has", what.value
        case FromBot():
            return "bots", True
        case Pinned():
            return "pinned", True
        case ReplyTo(message_id):
            return "reply_to", str(message_id)
    return "", None


def _name_or_id(author_id: int) -> str:
    """Return the name of a chat user if it is found by it and no other user is, otherwise the id."""
    user = ChatUser.objects.filter(pk=author_id).first()
    if user is None or split_names(str(user)) != [str(user)]:
        return str(author_id)
    try:
        return str(user) if find_author(str(user)) == author_id else str(author_id)
    except BadInput:
        return str(author_id)


def _check_name(channels: Sequence[Channel], typed: str) -> None:
    """Raise `BadInput` unless exactly one channel was named and its name was typed."""
    if len(channels) != 1:
        raise BadInput(_("Select exactly one channel to delete all of its messages."))
    if typed.strip().removeprefix("#").casefold() != channels[0].name.strip().removeprefix("#").casefold():
        raise BadInput(_("To delete all messages of the channel, type its name: %(name)s", name=channels[0].name))


def _combine(description: Description, *, user: Actor, now: dt.datetime) -> Filter | None:
    parts = list(_conditions(description.all, user=user, now=now))
    either = tuple(_conditions(description.either, user=user, now=now))
    if either:
        parts.append(either[0] if len(either) == 1 else AnyOf(either))
    parts.extend(Not(part) for part in _conditions(description.none, user=user, now=now))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _conditions(terms: Terms, *, user: Actor, now: dt.datetime) -> Iterator[Filter]:  # noqa: C901, PLR0912
    names = split_names(terms.authors)
    if names:
        yield Author(tuple(dict.fromkeys(map(find_author, names))))
    if terms.after.strip():
        yield Since(first_id_from(parse_datetime(terms.after, now=now)))
    if terms.before.strip():
        yield Before(first_id_from(parse_datetime(terms.before, now=now, is_end=True)))
    if terms.words.strip():
        yield Words(terms.words.strip())
    if terms.any_words.strip():
        yield AnyWord(terms.any_words.strip())
    if terms.similar.strip():
        yield Similar(_text_to_compare(terms.similar.strip(), user=user))
    if days := terms.account_days.strip():
        error = _("“%(typed)s” is not a number of days. Enter a whole number, such as 7.", typed=days[:20])
        yield YoungAccount(_parse_number(days, error))
    if minutes := terms.joined_minutes.strip():
        error = _("“%(typed)s” is not a number of minutes. Enter a whole number, such as 10.", typed=minutes[:20])
        yield JoinedWithin(_parse_number(minutes, error))
    if hours := terms.first_seen_hours.strip():
        error = _("“%(typed)s” is not a number of hours. Enter a whole number, such as 24.", typed=hours[:20])
        yield FirstSeenWithin(_parse_number(hours, error))
    if terms.pattern.strip():
        yield Pattern(terms.pattern)
    yield from map(_has, terms.has)
    if terms.bots:
        yield FromBot()
    if terms.pinned:
        yield Pinned()
    if terms.reply_to.strip():
        yield ReplyTo(parse_snowflake(terms.reply_to))


def _text_to_compare(typed: str, *, user: Actor) -> str:
    """Return the typed text, or that of the message whose link was typed."""
    # A text may end with a link.
    link = None if len(typed.split()) > 1 else find_message_link(typed)
    if link is None:
        return typed
    channel_id, message_id = map(parse_snowflake, link)
    is_visible = visible_channels(user).filter(pk=channel_id).exists()
    found = messages.read_message(channel_id, message_id) if is_visible else None
    if found is None or not found.content.strip():
        raise BadInput(_("The linked message has no text, or does not exist. Enter the text itself."))
    return found.content.replace("\x00", "")[:MAX_TEXT_CHARACTERS]


def _parse_number(typed: str, error: Text) -> int:
    """Return a whole number, whose limits its condition checks. Raises `BadInput` with the error for anything else."""
    if not (typed.isascii() and typed.isdigit() and len(typed) <= MAX_DIGITS):
        raise BadInput(error)
    return int(typed)


def _has(what: str) -> Has:
    if what not in tuple(Content):
        raise BadInput(
            _(
                "Unknown content type “%(type)s”. Use one of: %(types)s.",
                type=what[:40],
                types=tuple(map(str, Content)),
            )
        )
    return Has(Content(what))


def find_author(name: str) -> int:
    """Return the id of the one chat user that an id or a name refers to.

    Raises `BadInput` if there are none or several.

    Ids take precedence and need not be known: authors may be missing from the member list.
    """
    number = _number(name)
    if number is not None and ChatUser.objects.filter(pk=number).exists():
        return number
    bare = name.removeprefix("@")
    found = list(ChatUser.objects.with_namesakes().named(bare)[: MAX_OF_ONE_NAME + 1])
    if len(found) > 1:
        ids = tuple(str(user.pk) for user in found[:3])
        raise AmbiguousName(
            _("Several users are called “%(name)s”. Enter an ID instead: %(ids)s …", name=name[:60], ids=ids),
            question=_("Several users are called “%(name)s”. Which one do you mean?", name=name[:60]),
            name=name,
            candidates=found,
        )
    if found:
        return found[0].pk
    if number is None:
        raise AmbiguousName(
            _("There is no user called “%(name)s”. Enter the exact name or the user’s ID.", name=name[:60]),
            question=_("There is no user called “%(name)s”. Which one do you mean?", name=name[:60]),
            name=name,
            candidates=find_by_name(ChatUser.objects.with_namesakes(), bare, limit=MAX_CANDIDATES),
        )
    return number


def find_channel(name: str, channels: ChannelQuerySet) -> Channel:
    """Return the one channel that an id or a name refers to. Raises `BadInput` if there are none or several."""
    number = _number(name)
    known = channels.filter(pk=number).first() if number is not None else None
    if known is not None:
        return known
    found = list(channels.named(name.removeprefix("#"))[: MAX_OF_ONE_NAME + 1])
    if len(found) > 1:
        ids = tuple(str(channel.pk) for channel in found[:3])
        raise AmbiguousName(
            _("Several channels are called “%(name)s”. Enter an ID instead: %(ids)s …", name=name[:60], ids=ids),
            question=_("Several channels are called “%(name)s”. Which one do you mean?", name=name[:60]),
            name=name,
            candidates=found,
        )
    if not found:
        # Discord channel names are often decorated: suggest “╰╸python-help” for python-help.
        like = find_by_name(channels, name.strip("# ") or name, limit=MAX_CANDIDATES)
        meant = tuple(f"“{channel.name[:60]}” ({channel.pk})" for channel in like[:3])
        if not meant:
            raise BadInput(_("There is no channel “%(name)s”. Enter its exact name or its ID.", name=name[:60]))
        raise AmbiguousName(
            _(
                "There is no channel “%(name)s”. Enter its exact name or its ID. Did you mean %(channels)s?",
                name=name[:60],
                channels=meant,
            ),
            question=_("There is no channel “%(name)s”. Which one do you mean?", name=name[:60]),
            name=name,
            candidates=like,
        )
    return found[0]


def find_guild(name: str, guilds: QuerySet[Guild]) -> Guild:
    """Return the one guild that an id or a name refers to. Raises `BadInput` if there are none or several."""
    if "\x00" in name:
        raise BadInput(_("A name cannot contain a NUL character. Remove it."))
    found = {guild.pk: guild for guild in guilds.filter(name__iexact=name)[:MAX_CANDIDATES]}
    with suppress(BadInput):
        found |= guilds.in_bulk([parse_snowflake(name)])
    if not found:
        raise BadInput(_("There is no server “%(name)s”. Enter its exact name or its ID.", name=name[:60]))
    if len(found) > 1:
        ids = tuple(str(guild_id) for guild_id in sorted(found)[:5])
        raise BadInput(
            _("Several servers are called “%(name)s”. Enter an ID instead: %(ids)s …", name=name[:60], ids=ids)
        )
    return next(iter(found.values()))


def _number(name: str) -> int | None:
    return parse_snowflake(name) if name.isascii() and name.lstrip("-").isdigit() else None


def split_names(text: str) -> list[str]:
    """Return the names in a field, separated by commas. Raises `BadInput` for too many names or a NUL character."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if len(names) > MAX_NAMES:
        raise BadInput(_("Too many names. Enter at most %(count)s in one field.", count=MAX_NAMES))
    if "\x00" in text:
        raise BadInput(_("A name cannot contain a NUL character. Remove it."))
    return names
