"""Roles of staff: what each may do, and where.

A role is given for the whole installation, for one guild, or for one channel. Channels without a guild, the direct
messages, belong to a role of their own, and to administrators of the whole installation. A right is named as Django's
permissions are, "app.codename".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

VIEW_CHANNELS = "chatstore.view_channel"
VIEW_ROLES = "chatstore.view_rolegrant"
GIVE_ROLES = "chatstore.add_rolegrant"


class Role(StrEnum):
    """Roles, from the one with the fewest rights over messages on."""

    AUDITOR = "auditor"
    MODERATOR = "moderator"
    LEAD = "lead"
    DIRECT = "direct"
    OPERATOR = "operator"
    ADMIN = "admin"


_READ = frozenset({VIEW_CHANNELS, "chatstore.view_guild", "moderation.view_purge"})
_AUDIT = _READ | {
    "chatstore.view_chatuser",
    "chatstore.view_reportcase",
    "moderation.view_auditentry",
    "moderation.view_hold",
    "moderation.view_note",
}
_MODERATE = (_AUDIT - {"moderation.view_auditentry"}) | {
    "chatstore.change_reportcase",
    "moderation.add_hold",
    "moderation.add_note",
    "moderation.add_purge",
}
_LEAD = _MODERATE | {
    "moderation.add_raidsettings",
    "moderation.approve_purge",
    "moderation.change_hold",
    "moderation.change_raidsettings",
    "moderation.erase_purge",
    "moderation.view_auditentry",
    "moderation.view_raidsettings",
}
_OPERATE = frozenset({"chatstore.view_finding", "chatstore.add_jobrun", "chatstore.change_jobschedule"})
_ADMINISTER = frozenset(
    {
        "auth.add_user",
        "auth.change_user",
        "auth.view_user",
        "chatstore.add_channel",
        "chatstore.add_chatuser",
        "chatstore.add_guild",
        "chatstore.change_channel",
        "chatstore.change_chatuser",
        "chatstore.change_guild",
    }
)

RIGHTS: dict[Role, frozenset[str]] = {
    Role.AUDITOR: _AUDIT | {VIEW_ROLES},
    Role.MODERATOR: _MODERATE,
    Role.LEAD: _LEAD,
    Role.DIRECT: frozenset({VIEW_CHANNELS}),
    Role.OPERATOR: _READ | _OPERATE,
    Role.ADMIN: _LEAD | _OPERATE | _ADMINISTER | {VIEW_ROLES, GIVE_ROLES},
}
"""Rights of each role for the whole installation."""

_INSTALLATION_ONLY = _OPERATE | _ADMINISTER
"""Rights over what no guild owns: servers, jobs, accounts, and the lists of the admin."""

INSTALLATION_ROLES = frozenset({Role.OPERATOR, Role.DIRECT})
"""Roles that are given for the whole installation only."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A role that an account has: in one guild, in one channel, or, without either, in the whole installation."""

    role: Role
    guild_id: int | None = None
    channel_id: int | None = None

    @classmethod
    def parse(cls, text: str) -> Grant:
        """Read `moderator`, for the whole installation, or `moderator@1234`, for a guild. Raises ValueError."""
        name, _at, guild = text.partition("@")
        role = Role(name)
        if not guild:
            return cls(role)
        if role in INSTALLATION_ROLES:
            raise ValueError(f"{name} can only be given for the whole installation")
        return cls(role, guild_id=int(guild))

    @property
    def is_installation_wide(self) -> bool:
        """True if it is neither for a guild nor for a channel."""
        return self.guild_id is None and self.channel_id is None

    @property
    def rights(self) -> frozenset[str]:
        """The rights that it gives where it applies."""
        rights = RIGHTS[self.role]
        return rights if self.is_installation_wide else rights - _INSTALLATION_ONLY


@dataclass(frozen=True, slots=True)
class Scope:
    """Channels in which an account has a right.

    every_guild: all channels of all guilds. direct: channels without a guild. guilds, channels: ids of further ones.
    """

    every_guild: bool = False
    direct: bool = False
    guilds: frozenset[int] = frozenset()
    channels: frozenset[int] = frozenset()

    @property
    def is_everything(self) -> bool:
        """True if it includes every channel."""
        return self.every_guild and self.direct

    @property
    def is_nothing(self) -> bool:
        """True if it includes no channel."""
        return self == Scope()

    def includes(self, channel_id: int, guild_id: int | None) -> bool:
        """Return whether it includes a channel. guild_id: the channel's, None for direct messages."""
        return channel_id in self.channels or self.includes_guild(guild_id)

    def includes_guild(self, guild_id: int | None) -> bool:
        """Return whether it includes all channels of a guild; None: all direct messages."""
        return self.direct if guild_id is None else self.every_guild or guild_id in self.guilds

    def covers(self, other: Scope) -> bool:
        """Return whether it includes another scope, as far as ids tell: not which guild a single channel is in."""
        return self.is_everything or (
            self.every_guild >= other.every_guild
            and self.direct >= other.direct
            and (self.every_guild or self.guilds >= other.guilds)
            and self.channels >= other.channels
        )

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object. Ids are strings, because JavaScript numbers cannot represent them."""
        return {
            "every_guild": self.every_guild,
            "direct": self.direct,
            "guilds": [str(i) for i in sorted(self.guilds)],
            "channels": [str(i) for i in sorted(self.channels)],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Scope:
        """Restore a scope from the value that `as_json` returned."""
        return cls(
            every_guild=value["every_guild"],
            direct=value["direct"],
            guilds=frozenset(map(int, value["guilds"])),
            channels=frozenset(map(int, value["channels"])),
        )


EVERYTHING = Scope(every_guild=True, direct=True)


def scope_of(grants: Iterable[Grant], right: str) -> Scope:
    """Return where some grants of one account give a right.

    The role for direct messages opens them to every right that the account has anywhere. On its own it lets the account
    read them.
    """
    held = [*grants]
    having = [grant for grant in held if right in grant.rights]
    everywhere = [grant for grant in having if grant.is_installation_wide and grant.role is not Role.DIRECT]
    opens_direct = any(grant.role is Role.DIRECT for grant in held) and bool(having)
    return Scope(
        every_guild=bool(everywhere),
        direct=opens_direct or any(grant.role is Role.ADMIN for grant in everywhere),
        guilds=frozenset() if everywhere else frozenset(g.guild_id for g in having if g.guild_id is not None),
        # A single direct message may be among them.
        channels=frozenset(grant.channel_id for grant in having if grant.channel_id is not None),
    )


def rights_of(grants: Iterable[Grant]) -> frozenset[str]:
    """Return the rights that some grants give anywhere."""
    return frozenset().union(*(grant.rights for grant in grants))


def rights_everywhere(grants: Collection[Grant]) -> frozenset[str]:
    """Return the rights that some grants of one account give in every channel: those for which `scope_of` says so."""
    opens_direct = any(grant.role is Role.DIRECT for grant in grants)
    return rights_of(
        grant
        for grant in grants
        if grant.is_installation_wide and (grant.role is Role.ADMIN or (opens_direct and grant.role is not Role.DIRECT))
    )


def may_give(grants: Collection[Grant], given: Grant, *, guild_id: int | None) -> bool:
    """Return whether an account with some grants may give another one: it must have each of its rights there.

    guild_id: of the channel that it is for, if it is for one.
    """
    return all(_covers(scope_of(grants, right), given, guild_id) for right in {GIVE_ROLES, *given.rights})


def _covers(scope: Scope, given: Grant, guild_id: int | None) -> bool:
    if given.channel_id is not None:
        return scope.includes(given.channel_id, guild_id)
    if given.guild_id is not None:
        return scope.includes_guild(given.guild_id)
    return scope.is_everything
