"""The composer's fields of names: what is suggested while one types, and what is chosen already, as JSON for a script.

Without the script, names and ids are typed, and the summary resolves them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from chatstore.domain.controls import show_hidden
from chatstore.domain.errors import BadInput, StoreUnavailable
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.models import Channel, ChatUser, Guild
from moderation.domain.filters import All, Author
from moderation.forms import Composer
from moderation.operations.access.visibility import ADD_PURGE, Actor
from moderation.operations.lookup.audit_log import VIEW_AUDIT
from moderation.operations.lookup.chat_users import account_made_at
from moderation.operations.preview.first_matches import count_by_author
from moderation.operations.selection.parsing import AmbiguousName, Description, parse_selection, split_names
from moderation.operations.selection.suggestions import (
    MAX_SUGGESTED,
    channels_named,
    guild_named,
    people_named,
    suggest_channels,
    suggest_guilds,
    suggest_people,
)
from moderation.presentation.avatars import initials_of, tone_of
from moderation.presentation.formats import format_count, format_number, keep_together
from moderation.presentation.people import SEPARATOR, describe_account

CHANNEL_FIELDS = ("channels", "except_channels")

MAX_TYPED_CHARACTERS = 200
"""Length of what a field of one name accepts."""


Named = Channel | ChatUser | Guild


class Pick(NamedTuple):
    """A chat user, a channel or a guild. value: what is put into the field. facts: what tells those of one name apart.
    avatar: a user’s tone and initials.
    """

    value: str
    label: str
    facts: tuple[str, ...] = ()
    avatar: tuple[int, str] | None = None

    @property
    def note(self) -> str:
        """The facts in one line."""
        return SEPARATOR.join(self.facts)


class Chosen(NamedTuple):
    """What a field of one name contains, and the same as JSON, for the script that shows it as a chip."""

    pick: Pick
    json: str


@require_safe
@permission_required("moderation.add_purge", raise_exception=True)
def suggestions(request: HttpRequest) -> JsonResponse:
    """Return the users, channels or guilds (`kind`) whose names contain `q`. `guild`: only channels of this guild."""
    return _suggest(request, ADD_PURGE)


@require_safe
@permission_required(VIEW_AUDIT, raise_exception=True)
def audit_suggestions(request: HttpRequest) -> JsonResponse:
    """Return the same for the filters of the audit log."""
    return _suggest(request, VIEW_AUDIT)


def _suggest(request: HttpRequest, right: str) -> JsonResponse:
    typed = request.GET.get("q", "")
    match request.GET.get("kind"):
        case "channels":
            guild = request.GET.get("guild", "").strip()
            found = describe_rows(suggest_channels(request.user, typed, right=right, guild=guild))
        case "guilds":
            found = describe_rows(suggest_guilds(request.user, typed, right=right))
        case _:
            found = describe_rows(suggest_people(request.user, typed))
    return JsonResponse({"picks": [pick._asdict() for pick in found]})


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def counts(request: HttpRequest) -> JsonResponse:
    """Return how many messages the users of `people` have in the channels and times that the form names, by ID."""
    try:
        people = [parse_snowflake(name) for name in split_names(request.POST.get("people", ""))[:MAX_SUGGESTED]]
        counted = _count_within(request.user, people, Composer(request.POST))
    except (BadInput, StoreUnavailable):
        return JsonResponse({"counts": {}})
    return JsonResponse({"counts": {str(author_id): count for author_id, count in counted.items()}})


def _count_within(user: Actor, people: Sequence[int], form: Composer) -> dict[int, str]:
    """Return the counts in the places and times of the form; at all times if these are invalid.

    Raises `BadInput` for invalid places, and `StoreUnavailable`.
    """
    try:
        return count_messages_of(user, people, form.read_reach())
    except BadInput:
        return count_messages_of(user, people, form.read_place())


def count_messages_of(user: Actor, people: Sequence[int], place: Description) -> dict[int, str]:
    """Return how many messages each of the users has in a place, as text, those with the most first: "3 messages here".

    The text is "" for users of whom none was found before the time was up.
    place: may have times, and no other conditions. Without a place they are counted everywhere, and the text has no
    "here".

    Raises `BadInput`, `StoreUnavailable`.
    """
    if not people:
        return {}
    # All of them are in one condition: a name that is typed would be looked up by a query of its own.
    one = replace(place, everything=False, with_pinned=True, all=replace(place.all, authors=str(people[0])))
    selection = parse_selection(one, user=user, now=timezone.localtime())
    parts = selection.where.parts if isinstance(selection.where, All) else ()
    times = [part for part in parts if not isinstance(part, Author)]
    authors = Author(tuple(people))
    found = count_by_author(user, replace(selection, where=All((authors, *times)) if times else authors))
    ordered = sorted(people, key=lambda author_id: -found.by_author.get(author_id, 0))
    pattern = _pattern(place, is_complete=found.is_complete)
    # The number is never alone at the end of a line.
    counts = {i: keep_together(format_count(found.by_author.get(i, 0), "message")) for i in ordered}
    return {
        author_id: pattern % {"messages": count} if found.is_complete or found.by_author.get(author_id) else ""
        for author_id, count in counts.items()
    }


def has_place(place: Description) -> bool:
    """Return whether channels or a guild were typed."""
    return bool(place.channels.strip() or place.guild.strip())


def _pattern(place: Description, *, is_complete: bool) -> str:
    match has_place(place), bool(place.all.after.strip() or place.all.before.strip()):
        case False, False:
            exact, least = "%(messages)s", gettext("%(messages)s or more")
        case True, False:
            exact, least = gettext("%(messages)s here"), gettext("at least %(messages)s here")
        case False, True:
            exact, least = gettext("%(messages)s in this time"), gettext("at least %(messages)s in this time")
        case _:
            exact, least = gettext("%(messages)s here in this time"), gettext("at least %(messages)s here in this time")
    return exact if is_complete else least


def describe_cut(error: AmbiguousName) -> str:
    """Return how many candidates of a name are offered if these are not all: "8 of 23 shown"; otherwise ""."""
    shown, count = len(error.candidates), len(error.everyone)
    if count <= shown:
        return ""
    several, exact = gettext("%(shown)s of more than %(count)s shown"), gettext("%(shown)s of %(count)s shown")
    return (several if error.has_more else exact) % {"shown": format_number(shown), "count": format_number(count)}


def describe_fields(user: Actor, form: Composer) -> dict[str, str]:
    """Return what each field of names contains, as JSON, by the field's name with underscores."""
    people = {f"{prefix}authors": terms["authors"].value() or "" for prefix, terms in form.groups.items()}
    places = {name: form.place[name].value() or "" for name in CHANNEL_FIELDS}
    users, channels = people_named(user, people.values()), channels_named(user, places.values())
    described = {name: [_describe_name(typed, users) for typed in _split(text)] for name, text in people.items()}
    described |= {name: [_describe_name(typed, channels) for typed in _split(text)] for name, text in places.items()}
    described["guild"] = _describe_guild(user, form.place["guild"].value() or "")
    return {name.replace("-", "_"): json.dumps([pick._asdict() for pick in picks]) for name, picks in described.items()}


def describe_choice(user: Actor, *, channel: str, person: str) -> dict[str, Chosen]:
    """Return what the fields `channel` and `user` contain, of which each takes one name; nothing for an empty one."""
    channel, person = (typed.strip().replace("\x00", "")[:MAX_TYPED_CHARACTERS] for typed in (channel, person))
    found = {}
    if channel:
        found["channel"] = _describe_name(channel, channels_named(user, [channel]))
    if person:
        found["user"] = _describe_name(person, people_named(user, [person]))
    return {name: Chosen(pick, json.dumps([pick._asdict()])) for name, pick in found.items()}


def _split(text: str) -> list[str]:
    try:
        return split_names(text)
    except BadInput:
        return [text.replace("\x00", "")]


def _describe_name(typed: str, known: dict[str, Any]) -> Pick:
    row = known.get(typed)
    return Pick(typed, show_hidden(typed)) if row is None else describe_row(row)


def _describe_guild(user: Actor, typed: str) -> list[Pick]:
    name = typed.strip().replace("\x00", "")
    if not name:
        return []
    guild = guild_named(user, name)
    return [Pick(name, show_hidden(name)) if guild is None else describe_row(guild)]


def describe_row(row: Named) -> Pick:
    """Return how a channel, a guild or a chat user is offered."""
    if isinstance(row, Guild):
        return Pick(str(row.pk), show_hidden(row.name))
    return _describe_channel(row) if isinstance(row, Channel) else _describe_user(row)


def describe_rows(rows: Sequence[Channel] | Sequence[Guild] | Sequence[ChatUser]) -> list[Pick]:
    """Return how several are offered: those that read the same are told apart, by the minute, or else by their ID."""
    described: list[Named] = [*rows]
    picks = [describe_row(row) for row in described]
    tell_apart: tuple[Callable[[Named, Pick], Pick], ...] = (_with_minute, _with_id)
    for add in tell_apart:
        keys = [_without_id_end(row, pick) for row, pick in zip(described, picks, strict=True)]
        alike = Counter(keys)
        picks = [
            add(row, pick) if alike[key] > 1 else pick for row, pick, key in zip(described, picks, keys, strict=True)
        ]
    return picks


def _without_id_end(row: Named, pick: Pick) -> tuple[str, ...]:
    """Return what is read, without the end of an ID: it is there to be found in summaries, and says nothing itself."""
    facts = [fact.replace(row.id_end, "") for fact in pick.facts] if isinstance(row, ChatUser) else pick.facts
    return pick.label, *facts


def _with_minute(row: Named, pick: Pick) -> Pick:
    return _describe_user(row, to_the_minute=True) if isinstance(row, ChatUser) else pick


def _with_id(row: Named, pick: Pick) -> Pick:
    number = gettext("ID %(id)s") % {"id": row.pk}
    return pick._replace(facts=(*pick.facts, number))


def _describe_channel(channel: Channel) -> Pick:
    place = (channel.guild.name if channel.guild else gettext("Direct messages"), channel.category)
    return Pick(str(channel.pk), show_hidden(str(channel)), tuple(show_hidden(name) for name in place if name))


def _describe_user(user: ChatUser, *, to_the_minute: bool = False) -> Pick:
    made_at = account_made_at(user.pk, now=timezone.now())
    facts = describe_account(user.distinct_handle, is_bot=user.is_bot, made_at=made_at, to_the_minute=to_the_minute)
    name = str(user)
    return Pick(str(user.pk), show_hidden(name), facts, (tone_of(user.pk), initials_of(name)))
