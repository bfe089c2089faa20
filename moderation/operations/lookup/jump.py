"""Suggestions of the search box while a user types: by index, so that each keystroke may ask.

Only guilds, of which there are few, and the newest purges are searched without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatstore.domain.errors import BadInput
from chatstore.domain.row_ids import RowId
from chatstore.domain.snowflakes import Snowflake, parse_snowflake
from chatstore.models import Channel, ChatUser, Guild
from moderation.domain.links import find_message_link
from moderation.models import Purge
from moderation.operations.access.visibility import (
    VIEW_PURGES,
    Actor,
    guilds_with_channels,
    require,
    visible_channels,
    visible_purges,
)
from moderation.operations.lookup.ids import decode_id
from moderation.operations.lookup.search import (
    QUERY_CHARACTERS,
    REASON_CHARACTERS,
    VIEW_USERS,
    find_channels,
    find_id,
    follow_link,
    guilds_named,
    other_channels_in,
)
from moderation.operations.selection.by_name import find_people

MAX_GUILDS = 3
MAX_CHANNELS = 6
MAX_USERS = 5
MAX_PURGES = 3

PURGES_SEARCHED = 200
"""Purges whose reasons are searched, newest first; all of them are by the page of results."""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What a query may mean. message: (channel, message id) of a link; message_id: an id that may be a message's.

    purge: that of an id. purges: those with the query in their reason, newest first. decoded: what an id itself says.
    """

    guilds: Sequence[Guild] = ()
    channels: Sequence[Channel] = ()
    users: Sequence[ChatUser] = ()
    purge: Purge | None = None
    purges: Sequence[Purge] = ()
    message: tuple[Channel, int] | None = None
    message_id: int | None = None
    decoded: RowId | Snowflake | None = None


def suggest(user: Actor, query: str) -> Suggestions:
    """Return what a query that may be incomplete can mean; no message is searched. Raises `Forbidden`."""
    require(user, "chatstore.view_channel")
    text = query.strip()
    if not text or len(text) > QUERY_CHARACTERS or "\x00" in text:
        return Suggestions()
    try:
        if link := find_message_link(text):
            channel, message_id = follow_link(user, *map(parse_snowflake, link))
            if channel is None or message_id is None:
                return Suggestions(channels=() if channel is None else (channel,))
            return Suggestions(message=(channel, message_id))
        if named := find_id(text):
            return _with_id(user, parse_snowflake(named))
    except BadInput:
        return Suggestions()
    name = text.lstrip("#@")
    channels = find_channels(user, name, limit=MAX_CHANNELS) if name and text[0] != "@" else []
    users = find_people(user, name, limit=MAX_USERS) if name and _may_find_users(user, text) else []
    guilds = guilds_named(user, name, limit=MAX_CHANNELS) if name and text[0] not in "@#" else []
    if guilds and len(channels) < MAX_CHANNELS:
        channels += other_channels_in(user, [guild.pk for guild in guilds], known=channels, limit=MAX_CHANNELS)
    purges = _purges_because_of(user, text) if text[0] not in "@#" else []
    return Suggestions(guilds=guilds[:MAX_GUILDS], channels=channels, users=users, purges=purges)


def _may_find_users(user: Actor, text: str) -> bool:
    return text[0] != "#" and user.has_perm(VIEW_USERS)


def _with_id(user: Actor, number: int) -> Suggestions:
    guilds = list(guilds_with_channels(user).filter(pk=number))
    channels = list(visible_channels(user).filter(pk=number))
    if guilds:
        channels += other_channels_in(user, [number], known=channels, limit=MAX_CHANNELS)
    users = list(ChatUser.objects.with_namesakes().filter(pk=number)) if user.has_perm(VIEW_USERS) else []
    purge = visible_purges(user).filter(pk=number).first()
    known = bool(guilds or channels or users or purge)
    return Suggestions(
        guilds=guilds,
        channels=channels,
        users=users,
        purge=purge,
        message_id=None if known else number,
        decoded=decode_id(number),
    )


def _purges_because_of(user: Actor, text: str) -> list[Purge]:
    """Return the newest purges with the text in their reason."""
    if len(text) < REASON_CHARACTERS or not user.has_perm(VIEW_PURGES):
        return []
    newest = (
        visible_purges(user).filter(confirmed_at__isnull=False).select_related(None).only("reason")[:PURGES_SEARCHED]
    )
    return [purge for purge in newest if text.casefold() in purge.reason.casefold()][:MAX_PURGES]
