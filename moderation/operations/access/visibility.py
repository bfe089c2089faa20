"""Who may see and do what: one fetch-and-authorise function per kind of thing.

From outside, what is absent and what is forbidden look alike: both are `NotFound`.
Only an act that the actor's role lacks altogether says so (`Forbidden`).
"""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import QuerySet

from chatstore.domain.errors import NotFound
from chatstore.models import Channel
from chatstore.operations.rights import require
from moderation.models import Purge

Actor = AbstractUser | AnonymousUser

__all__ = ["Actor", "channel_for", "name_of", "purge_for", "require", "visible_channels", "visible_purges"]


def name_of(staff: AbstractUser) -> str:
    """What a member of staff is called: the full name, or else the account's."""
    return staff.get_full_name() or staff.get_username()


def visible_channels(user: Actor) -> QuerySet[Channel]:
    """The channels a user may open, with their guilds; none without the right."""
    channels = Channel.objects.select_related("guild")
    return channels if user.has_perm("chatstore.view_channel") else channels.none()


def channel_for(user: Actor, channel_id: int) -> Channel:
    """The channel with its guild. Raises `NotFound` when it is absent or not for this user."""
    channel = visible_channels(user).filter(pk=channel_id).first()
    if channel is None:
        raise NotFound(f"There is no channel {channel_id}.")
    return channel


def visible_purges(user: Actor) -> QuerySet[Purge]:
    """The purges a user may open, with their moderators; none without the right."""
    purges = Purge.objects.filter(is_rewrite=False).select_related("moderator")
    return purges if user.has_perm("moderation.view_purge") else purges.none()


def purge_for(user: Actor, purge_id: int) -> Purge:
    """The purge with its moderator. Raises `NotFound` when it is absent or not for this user."""
    purge = visible_purges(user).filter(pk=purge_id).first()
    if purge is None:
        raise NotFound(f"There is no purge {purge_id}.")
    return purge
