"""Search box: accepts a link or an id of a message, a purge, a channel or a chat user, and names.

Names are those of guilds, channels and users, and the reasons of purges.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from django.utils import timezone

from chatstore.domain.errors import BadInput, StoreUnavailable
from chatstore.domain.snowflakes import parse_snowflake, time_of
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.names import MAX_RANKED
from chatstore.operations.gateway.timeline import last_day_of
from chatstore.operations.rights import VIEW_CHANNELS, guilds_for
from chatstore.store.authors import author_buckets
from chatstore.store.locating import Located
from moderation.domain.links import (
    find_channel_link,
    find_mention,
    find_message_link,
    find_purge_link,
    find_user_link,
)
from moderation.models import Purge
from moderation.operations.access.visibility import (
    VIEW_PURGES,
    Actor,
    guilds_with_channels,
    require,
    visible_channels,
    visible_purges,
)
from moderation.operations.lookup.author_places import ENTRIES_AT_ONCE, AuthorPlaces, first_places_of_each
from moderation.operations.lookup.channels import newest_among
from moderation.operations.lookup.chat_users import account_made_at
from moderation.operations.lookup.message_history import locate
from moderation.operations.selection.by_name import find_active_first, find_people, guilds_by_name

MAX_HITS = 20
MAX_USERS = 10
MAX_GUILDS = 10
MAX_PURGES = 10
MAX_RECENT = 6
"""Channels that are named of each user."""

MAX_GUILDS_NAMED = 20
MAX_GUILD_WORDS = 4
"""Guilds whose name may follow that of a channel, and words of it: each number of words is looked up."""

REASON_CHARACTERS = 3
"""Shorter texts are no part of a reason."""

QUERY_CHARACTERS = 300
VIEW_USERS = "chatstore.view_chatuser"

_ID = re.compile(r"-?[0-9]{6,20}")


@dataclass(frozen=True, slots=True)
class RecentChannel:
    """Channel in which a user posted, and the last day of their latest period there."""

    channel: Channel
    until: dt.date


@dataclass(frozen=True, slots=True)
class FoundUser:
    """Chat user and their channels, the most recent first. made_at: creation of the account, if the id contains it."""

    user: ChatUser
    made_at: dt.datetime | None
    recent_channels: Sequence[RecentChannel]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Search result. message: (channel id, message id) if the query names exactly one. purge_id: the same of a purge.

    not_found: extent of the search for a bare id that no channel has. posted_at: the time that this id contains.
    """

    message: tuple[int, int] | None = None
    purge_id: int | None = None
    not_found: Located | None = None
    posted_at: dt.datetime | None = None
    guilds: Sequence[Guild] = ()
    channels: Sequence[Channel] = ()
    users: Sequence[FoundUser] = ()
    purges: Sequence[Purge] = ()

    @property
    def only_channel(self) -> Channel | None:
        """Return the channel, if it is all that was found."""
        has_more = len(self.channels) != 1 or self.guilds or self.users or self.purges
        return None if has_more else self.channels[0]


def search_anything(user: Actor, query: str) -> SearchResult:
    """Return the visible results for a query. Raises `BadInput` if it is empty."""
    require(user, "chatstore.view_channel")
    query_text = query.strip()
    if not query_text:
        raise BadInput(_("Enter a message link, an ID, or the name of a channel or user."))
    if len(query_text) > QUERY_CHARACTERS or "\x00" in query_text:
        raise BadInput(_("The search text is too long. Enter a name, an ID or a message link."))
    if link := find_message_link(query_text):
        channel, message_id = follow_link(user, *map(parse_snowflake, link))
        if channel is None or message_id is None:
            return SearchResult(channels=() if channel is None else (channel,))
        return SearchResult(message=(channel.pk, message_id))
    if named := find_id(query_text):
        return _find_id(user, parse_snowflake(named))
    return _find_names(user, query_text)


def find_id(query_text: str) -> str | None:
    """Return an id as typed, or that of a mention or of a link of a purge, a channel or a chat user; else None."""
    if _ID.fullmatch(query_text):
        return query_text
    for find in (find_purge_link, find_channel_link, find_user_link, find_mention):
        if found := find(query_text):
            return found
    return None


def follow_link(user: Actor, first: int, second: int) -> tuple[Channel | None, int | None]:
    """Return the visible channel and the message that two IDs of a link name, None for what it does not name.

    They are a channel and a message, or a guild and a channel: the chat's own link of a channel looks the same.
    """
    if channel := visible_channels(user).filter(pk=first).first():
        return channel, second
    return visible_channels(user).filter(pk=second, guild_id=first).first(), None


def find_channels(user: Actor, name: str, *, limit: int) -> list[Channel]:
    """Return the visible channels of a name, which the name of their guild may follow: "general (Tidewalkers)"."""
    channels = find_active_first(visible_channels(user), name, limit=limit)
    words = name.replace("(", " ").replace(")", " ").split()
    for at in range(len(words) - 1, max(len(words) - 1 - MAX_GUILD_WORDS, 0), -1):
        if channels:
            break
        guilds = guilds_by_name(guilds_with_channels(user), " ".join(words[at:]))[:MAX_GUILDS_NAMED]
        named = visible_channels(user).filter(guild__in=[guild.pk for guild in guilds])
        channels = find_active_first(named, " ".join(words[:at]), limit=limit)
    return channels


def other_channels_in(
    user: Actor, guild_ids: Collection[int], *, known: Sequence[Channel], limit: int
) -> list[Channel]:
    """Return visible channels of some guilds without those that are known, so that there are `limit` with these.

    Those with the newest messages come first, then others by name.
    """
    missing, shown = limit - len(known), [channel.pk for channel in known]
    channels = visible_channels(user).filter(guild_id__in=guild_ids).exclude(pk__in=shown)
    found: list[Channel] = []
    with suppress(StoreUnavailable):
        found = newest_among(channels, limit=missing, max_ranked=MAX_RANKED)
    return [*found, *channels.exclude(pk__in=[channel.pk for channel in found])[: missing - len(found)]]


def guilds_named(user: Actor, name: str, *, limit: int) -> list[Guild]:
    """Return guilds with channels as `guilds_by_name`."""
    return list(guilds_by_name(guilds_with_channels(user), name)[:limit])


def _find_id(user: Actor, number: int) -> SearchResult:
    in_guild = visible_channels(user).filter(guild_id=number).order_by("category", "name", "pk")
    channels = [*visible_channels(user).filter(pk=number), *in_guild[:MAX_HITS]]
    if visible_purges(user).filter(pk=number).exists():
        return SearchResult(purge_id=number)
    known = ChatUser.objects.with_namesakes().filter(pk=number) if user.has_perm(VIEW_USERS) else ()
    users = _describe_users(user, list(known))
    if channels or users:
        return SearchResult(channels=channels, users=users)
    located = locate(user, number)
    if located.channel_id is None:
        return SearchResult(not_found=located, posted_at=time_of(number))
    return SearchResult(message=(located.channel_id, number))


def _find_names(user: Actor, query_text: str) -> SearchResult:
    name = query_text.lstrip("#@")
    channels = find_channels(user, name, limit=MAX_HITS)
    if len(channels) < MAX_HITS:
        guilds = list(guilds_for(user, VIEW_CHANNELS).filter(name__icontains=name).values_list("pk", flat=True))
        channels += other_channels_in(user, guilds, known=channels, limit=MAX_HITS)
    users = find_people(user, name, limit=MAX_USERS) if user.has_perm(VIEW_USERS) else []
    return SearchResult(
        guilds=guilds_named(user, name, limit=MAX_GUILDS) if query_text[0] not in "@#" else (),
        channels=channels,
        users=_describe_users(user, users),
        purges=_purges_because_of(user, query_text),
    )


def _purges_because_of(user: Actor, text: str) -> Sequence[Purge]:
    """Return the newest confirmed purges with the text in their reason; none for a very short text."""
    if len(text) < REASON_CHARACTERS or not user.has_perm(VIEW_PURGES):
        return ()
    return list(visible_purges(user).filter(confirmed_at__isnull=False, reason__icontains=text)[:MAX_PURGES])


def _describe_users(user: Actor, people: Sequence[ChatUser]) -> list[FoundUser]:
    now, indexes = timezone.now(), [author_buckets(person.pk) for person in people]
    places = first_places_of_each(indexes, visible_channels(user), limit=ENTRIES_AT_ONCE)
    return [
        FoundUser(person, account_made_at(person.pk, now=now), _recent_channels(found))
        for person, found in zip(people, places, strict=True)
    ]


def _recent_channels(places: AuthorPlaces) -> list[RecentChannel]:
    newest: dict[int, int] = {}
    for bucket, channel_id in places.entries:
        newest.setdefault(channel_id, bucket)
    return [
        RecentChannel(places.channels[channel_id], last_day_of(bucket))
        for channel_id, bucket in islice(newest.items(), MAX_RECENT)
    ]
