"""Limits on what one person deletes: which apply to them, and when there is room for another purge.

The highest of a person's roles in a guild decides whose limits apply there: administrators have none. Of those of the
guild and of the whole installation, and of all guilds of a purge, the strictest counts, each limit by itself.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from chatstore.domain.roles import Grant, Role

LIMITED_ROLES = (Role.MODERATOR, Role.LEAD)
"""Roles that delete messages, from the lowest. Administrators set the limits, and are not limited."""

MAX_LIMIT = 1_000_000_000

HOUR = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a role in one place; None: no limit."""

    messages_without_approval: int | None = None
    purges_per_hour: int | None = None
    messages_per_hour: int | None = None
    open_previews: int | None = None

    def as_json(self) -> dict[str, int]:
        """Return the limits that are set, by name."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def without_approval(self) -> int | None:
        """Messages above which a purge needs an approval. One that never fits into an hour needs one too."""
        return min(
            (limit for limit in (self.messages_without_approval, self.messages_per_hour) if limit is not None),
            default=None,
        )

    @property
    def per_hour(self) -> bool:
        """True if what was confirmed within the last hour counts."""
        return self.purges_per_hour is not None or self.messages_per_hour is not None


LIMITS = tuple(one.name for one in fields(Limits))
"""Names of the limits, in their order on pages."""


@dataclass(frozen=True, slots=True)
class PlaceLimits:
    """Limits that apply to a person in a guild; guild_id None: in the whole installation. name: of the guild."""

    guild_id: int | None
    name: str
    limits: Limits

    def includes(self, guild_ids: Sequence[int] | None) -> bool:
        """Return whether a purge counts here. guild_ids: its guilds; None: not known yet, so it may be anywhere."""
        return self.guild_id is None or guild_ids is None or self.guild_id in guild_ids


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A purge that was confirmed within the last hour."""

    at: dt.datetime
    messages: int


_RANKS = (*LIMITED_ROLES, Role.ADMIN)


def role_in(grants: Iterable[Grant], guild_id: int) -> Role | None:
    """Return the role whose limits apply to a person in a guild (0: in direct messages); None for no limits.

    A role for some channels may be in any guild, and the role for direct messages opens them to all others: these count
    where no other does, and of several the lowest.
    """
    held = [grant for grant in grants if grant.role in _RANKS]
    there = [grant.role for grant in held if grant.is_installation_wide or grant.guild_id == guild_id]
    if there:
        found = max(there, key=_RANKS.index)
    else:
        others = (grant.role for grant in held if grant.channel_id is not None or guild_id == 0)
        found = min(others, key=_RANKS.index, default=Role.ADMIN)
    return None if found is Role.ADMIN else found


def free_at(confirmed: Sequence[Confirmed], *, messages: int, limits: Limits) -> dt.datetime | None:
    """Return when a purge of so many messages is within the limits per hour; None if it is now.

    confirmed: purges of the last hour, oldest first. The purge itself is not above `messages_per_hour`.
    """
    left = list(confirmed)
    at = None
    while left and not _has_room(left, messages, limits):
        at = left.pop(0).at + HOUR
    return at


def _has_room(confirmed: Sequence[Confirmed], messages: int, limits: Limits) -> bool:
    total = messages + sum(one.messages for one in confirmed)
    return (limits.purges_per_hour is None or len(confirmed) < limits.purges_per_hour) and (
        limits.messages_per_hour is None or total <= limits.messages_per_hour
    )
