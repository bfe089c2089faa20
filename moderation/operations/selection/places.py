"""Roles and their places as people type them: a guild and channels, by name or ID, and a last day."""

from __future__ import annotations

import datetime as dt
import re

from django.db.models import QuerySet

from chatstore.domain.errors import BadInput
from chatstore.domain.roles import Grant, Role
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Guild
from chatstore.models.users import User
from chatstore.operations.rights import GIVE_ROLES, scope_for
from moderation.operations.access.visibility import visible_channels
from moderation.operations.selection.parsing import find_channel, find_guild, split_names

_DAY = re.compile(r"\d{4}-\d\d-\d\d")

LAST_YEAR = dt.MAXYEAR - 1
"""Last year in which a role can end. A later time may not exist in the time zone of who views it."""


def parse_grants(role: str, *, guild: str, channels: str, user: User) -> list[Grant]:
    """Return the roles to give: one for each channel, else one for the guild, else one for the whole installation.

    Raises `BadInput` for an unknown role, and for names that the user does not administer, or that are ambiguous.
    """
    if role not in {one.value for one in Role}:
        raise BadInput(_("Choose a role."))
    guild_id = find_guild(guild.strip(), _administered_guilds(user)).pk if guild.strip() else None
    names = split_names(channels)
    if not names:
        return [Grant(Role(role), guild_id=guild_id)]
    rows = visible_channels(user, GIVE_ROLES)
    rows = rows if guild_id is None else rows.filter(guild_id=guild_id)
    found = dict.fromkeys(find_channel(name, rows).pk for name in names)
    return [Grant(Role(role), channel_id=channel_id) for channel_id in found]


def parse_until(text: str, *, now: dt.datetime) -> dt.datetime | None:
    """Return when a role ends: after a day, or at a time; None for no end. Raises `BadInput`."""
    text = text.strip()
    if not text:
        return None
    try:
        if _DAY.fullmatch(text):
            day = dt.date.fromisoformat(text) + dt.timedelta(days=1)
            return _check_year(dt.datetime.combine(day, dt.time(), now.tzinfo))
        time = dt.datetime.fromisoformat(text)
        return _check_year(time if time.tzinfo is not None else time.replace(tzinfo=now.tzinfo)).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise BadInput(_("“%(text)s” is not a valid day. Use a format like 2027-03-31.", text=text[:40])) from None


def _check_year(time: dt.datetime) -> dt.datetime:
    if time.year > LAST_YEAR:
        raise ValueError(time)
    return time


def _administered_guilds(user: User) -> QuerySet[Guild]:
    scope = scope_for(user, GIVE_ROLES)
    return Guild.objects.all() if scope.every_guild else Guild.objects.filter(pk__in=scope.guilds)
