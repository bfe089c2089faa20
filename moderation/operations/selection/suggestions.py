"""Chat users, channels and guilds that are suggested for a name in the composer, and those that its fields name.

By index, so that each keystroke may ask.
"""

from __future__ import annotations

from collections.abc import Iterable

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.models import Channel, ChatUser, Guild
from moderation.operations.access.visibility import ADD_PURGE, Actor, guilds_with_channels, require, visible_channels
from moderation.operations.selection.by_name import find_active_first, find_people, guilds_by_name
from moderation.operations.selection.parsing import find_author, find_channel, find_guild, split_names

MAX_SUGGESTED = 8

MAX_LOOKED_UP = 20
"""Names of one field that are looked up to describe them; each is a query. IDs are one query together."""


def suggest_people(user: Actor, typed: str) -> list[ChatUser]:
    """Return chat users by the beginning or a part of a name, or by an id. Raises `Forbidden`."""
    require(user, "chatstore.view_chatuser")
    name = _clean(typed, "@")
    if not name:
        return []
    known = [] if (number := _number(name)) is None else list(ChatUser.objects.with_namesakes().filter(pk=number))
    return known or find_people(user, name, limit=MAX_SUGGESTED)


def suggest_channels(user: Actor, typed: str, *, right: str = ADD_PURGE, guild: str = "") -> list[Channel]:
    """Return channels in which the user has a right, by the beginning or a part of a name, or by an id.

    guild: only those of this guild, by name or id. Raises `Forbidden`, and `BadInput` for an unknown guild.
    """
    require(user, right)
    channels = visible_channels(user, right)
    if guild:
        channels = channels.filter(guild_id=find_guild(guild, guilds_with_channels(user, right)).pk)
    name = _clean(typed, "#")
    if not name:
        return []
    known = [] if (number := _number(name)) is None else list(channels.filter(pk=number))
    return known or find_active_first(channels, name, limit=MAX_SUGGESTED)


def suggest_guilds(user: Actor, typed: str, *, right: str = ADD_PURGE) -> list[Guild]:
    """Return guilds with channels in which the user has a right, by a part of the name, or by an id; else the first.

    Raises `Forbidden`.
    """
    require(user, right)
    guilds, name = guilds_with_channels(user, right), typed.strip()
    if "\x00" in name:
        return []
    known = [] if (number := _number(name)) is None else list(guilds.filter(pk=number))
    return known or list(guilds_by_name(guilds, name)[:MAX_SUGGESTED])


def people_named(user: Actor, fields: Iterable[str]) -> dict[str, ChatUser]:
    """Return the chat users of the names and ids in fields, by what was typed; without those that are not one user."""
    require(user, "chatstore.view_chatuser")
    names = _names_in(fields)
    known = {
        str(user_id): found for user_id, found in ChatUser.objects.with_namesakes().in_bulk(_numbers_in(names)).items()
    }
    for name in [name for name in names if name not in known][:MAX_LOOKED_UP]:
        try:
            found = ChatUser.objects.with_namesakes().filter(pk=find_author(name)).first()
        except BadInput:
            continue
        if found is not None:
            known[name] = found
    return known


def channels_named(user: Actor, fields: Iterable[str]) -> dict[str, Channel]:
    """Return the channels of the names and ids in fields, by what was typed; without those that are not one channel."""
    channels, names = visible_channels(user), _names_in(fields)
    known = {str(channel_id): found for channel_id, found in channels.in_bulk(_numbers_in(names)).items()}
    for name in [name for name in names if name not in known][:MAX_LOOKED_UP]:
        try:
            known[name] = find_channel(name, channels)
        except BadInput:
            continue
    return known


def guild_named(user: Actor, typed: str) -> Guild | None:
    """Return the guild of a name or an id; None if that is not one guild."""
    try:
        return find_guild(typed, guilds_with_channels(user))
    except BadInput:
        return None


def _names_in(fields: Iterable[str]) -> list[str]:
    try:
        return list(dict.fromkeys(name for field in fields for name in split_names(field)))
    except BadInput:
        return []  # the summary says what has to be fixed


def _numbers_in(names: Iterable[str]) -> list[int]:
    return [number for name in names if (number := _number(name)) is not None]


def _clean(typed: str, sign: str) -> str:
    name = typed.strip().removeprefix(sign).strip()
    return "" if "\x00" in name else name


def _number(name: str) -> int | None:
    if not (name.isascii() and name.lstrip("-").isdigit()):
        return None
    try:
        return parse_snowflake(name)
    except BadInput:
        return None
