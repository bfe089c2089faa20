"""Channels and chat users by name, the most recently active first: many have the same name. Guilds by name.

By index, so that each keystroke may ask. Guilds are few enough to be searched without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from django.db.models import Case, QuerySet, When

from chatstore.domain.errors import StoreUnavailable
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.chat import ChannelQuerySet
from chatstore.models.names import find_by_name
from chatstore.store.activity import MAX_ACTIVE, last_active_channels, order_by_last_post
from chatstore.store.authors import newest_places
from moderation.operations.access.visibility import Actor, visible_channels

MAX_OF_ONE_NAME = 100
"""Users of one name of which the last to post are offered: their places are one read."""


def find_active_first(channels: ChannelQuerySet, name: str, *, limit: int) -> list[Channel]:
    """Return channels as `find_by_name`, of each kind of match those with the newest messages first.

    Without the store, the names remain.
    """
    try:
        active = last_active_channels(MAX_ACTIVE)
        # Other channels are busier than those of this name.
        rank = order_by_last_post if len(active) == MAX_ACTIVE else None
        return find_by_name(channels, name, limit=limit, preferred=active, rank=rank)
    except StoreUnavailable:
        return find_by_name(channels, name, limit=limit)


def guilds_by_name(guilds: QuerySet[Guild], text: str) -> QuerySet[Guild]:
    """Return the guilds whose name contains a text: first those of exactly this name, then those that begin with it."""
    match = Case(When(name__iexact=text, then=0), When(name__istartswith=text, then=1), default=2)
    return guilds.filter(name__icontains=text).order_by(match, "name", "pk")


def find_people(user: Actor, name: str, *, limit: int) -> list[ChatUser]:
    """Return chat users as `find_by_name`. Of more than `limit` of exactly this name, those that posted last."""
    found = find_by_name(ChatUser.objects.with_namesakes(), name, limit=limit)
    if len(found) < limit:
        return found
    same = list(ChatUser.objects.with_namesakes().named(name).order_by()[:MAX_OF_ONE_NAME])
    if len(same) <= limit:
        return found
    with suppress(StoreUnavailable):
        return sort_by_activity(same, visible_channels(user))[:limit]
    return found


def sort_by_activity(people: Sequence[ChatUser], channels: ChannelQuerySet) -> list[ChatUser]:
    """Return chat users by the bucket in which they last posted in some channels, the most recent first.

    Those without one, of their newest places, come last. Raises `StoreUnavailable`.
    """
    places = newest_places([person.pk for person in people])
    wanted = {channel_id for some in places.values() for _, channel_id in some}
    visible = set(channels.filter(pk__in=wanted).values_list("pk", flat=True))
    newest = {
        author_id: bucket
        for author_id, some in places.items()
        for bucket, channel_id in reversed(some)
        if channel_id in visible
    }
    first = min(newest.values(), default=0) - 1
    return sorted(people, key=lambda person: -newest.get(person.pk, first))
