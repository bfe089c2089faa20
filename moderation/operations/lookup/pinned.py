"""Channels that a member of staff pinned."""

from __future__ import annotations

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.rights import VIEW_CHANNELS, restrict, scope_for
from moderation.models import PinnedChannel
from moderation.operations.access.visibility import Actor, channel_for

MAX_PINNED = 20


def pinned_channels(user: Actor) -> list[Channel]:
    """Return the channels that the user pinned and may open, in the order of pinning."""
    if user.pk is None:
        return []
    pins = PinnedChannel.objects.filter(user_id=user.pk).select_related("channel__guild")
    visible = restrict(pins, scope_for(user, VIEW_CHANNELS), guild="channel__guild_id", channel="channel_id")
    return [pin.channel for pin in visible[:MAX_PINNED]]


def pin_channel(channel_id: int, *, actor: User) -> None:
    """Pin a channel. Raises `NotFound`, and `BadInput` if the user has pinned as many as are allowed."""
    channel = channel_for(actor, channel_id)
    own = PinnedChannel.objects.filter(user=actor)
    if own.exclude(channel=channel).count() >= MAX_PINNED:
        raise BadInput(_("You have pinned %(count)s channels. Unpin one of them first.", count=MAX_PINNED))
    own.get_or_create(channel=channel, defaults={"user": actor})


def unpin_channel(channel_id: int, *, actor: User) -> None:
    """Unpin a channel; nothing happens if it isn't pinned."""
    PinnedChannel.objects.filter(user=actor, channel_id=channel_id).delete()
