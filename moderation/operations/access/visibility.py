"""Authorization: one function per kind of object that fetches it and checks access.

Missing and forbidden objects look alike from outside: both raise `NotFound`. Only an action that the actor's role
does not include raises `Forbidden`.
"""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import QuerySet

from chatstore.domain.errors import NotFound
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel
from chatstore.models.chat import ChannelQuerySet
from chatstore.operations.rights import require
from moderation.models import Purge

Actor = AbstractUser | AnonymousUser

__all__ = ["Actor", "channel_for", "name_of", "purge_for", "require", "visible_channels", "visible_purges"]


def name_of(staff: AbstractUser) -> str:
    """Return the display name of a staff account: the full name, or else the user name."""
    return staff.get_full_name() or staff.get_username()


def visible_channels(user: Actor) -> ChannelQuerySet:
    """Return the channels that a user may open, with their guilds; none without the permission."""
    channels = Channel.objects.select_related("guild")
    return channels if user.has_perm("chatstore.view_channel") else channels.none()


def channel_for(user: Actor, channel_id: int) -> Channel:
    """Return the channel with its guild. Raises `NotFound` if it is missing or not visible to the user."""
    channel = visible_channels(user).filter(pk=channel_id).first()
    if channel is None:
        raise NotFound(_("There is no channel %(id)s.", id=str(channel_id)))
    return channel


def visible_purges(user: Actor) -> QuerySet[Purge]:
    """Return the purges that a user may open, with their moderators; none without the permission."""
    purges = Purge.objects.filter(is_rewrite=False).select_related("moderator")
    return purges if user.has_perm("moderation.view_purge") else purges.none()


def purge_for(user: Actor, purge_id: int) -> Purge:
    """Return the purge with its moderator. Raises `NotFound` if it is missing or not visible to the user."""
    purge = visible_purges(user).filter(pk=purge_id).first()
    if purge is None:
        raise NotFound(_("There is no purge %(id)s.", id=str(purge_id)))
    return purge
