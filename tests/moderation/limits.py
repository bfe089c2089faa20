"""Guilds with limits, for the tests of what these forbid."""

from __future__ import annotations

from chatstore.domain.roles import Role
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.limits import Limits
from moderation.domain.selection import Selection
from moderation.models import Purge, PurgeApproval
from moderation.operations.access.limits import set_limits
from moderation.operations.purging.approvals import request_approval
from tests.conftest import give, make_user
from tests.moderation.channels import choose, make_channel, old_ids, preview, write


def make_guild_channel(name: str = "Tidewalkers") -> Channel:
    """Return a channel of a new guild, with 20 old messages."""
    channel = make_channel(guild=name)
    write(channel, old_ids(20))
    return channel


def member(name: str, role: Role, *channels: Channel) -> User:
    """Return an account with a role in the guilds of some channels."""
    account = make_user(name, group=None)
    for channel in channels:
        give(account, role, guild_id=channel.guild_id)
    return account


def limit(channel: Channel, role: Role = Role.MODERATOR, **limits: int) -> None:
    """Set the limits of a role in a channel's guild."""
    set_limits(role, channel.guild_id, Limits(**limits), actor=make_user("ada", group="admins"))


def preview_some(moderator: User, count: int, *channels: Channel) -> Purge:
    """Preview the first messages of each channel."""
    ids = old_ids(20)
    where = choose(channels[0].pk, after_id=ids[0] - 1, before_id=ids[count - 1] + 1).where
    return preview(moderator, Selection(channel_ids=tuple(channel.pk for channel in channels), where=where))


def request(moderator: User, purge: Purge, reason: str = "Spam wave") -> PurgeApproval:
    """Request the approval of a preview."""
    manifest_hash = bytes(purge.manifest_hash or b"")
    return request_approval(purge.pk, moderator=moderator, reason=reason, manifest_hash=manifest_hash)
