"""Roles and their places as people type them: a guild and channels, by name or ID, and a last day."""

from __future__ import annotations

import datetime as dt

from django.db.models import QuerySet

from chatstore.domain.errors import BadInput
from chatstore.domain.roles import Grant, Role
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Guild
from chatstore.models.users import User
from chatstore.operations.rights import GIVE_ROLES, scope_for
from moderation.domain.datetimes import parse_bound
from moderation.operations.access.visibility import visible_channels
from moderation.operations.selection.parsing import find_channel, find_guild, split_names


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
    """Return when a role ends: after a day, or at a time; None for no end. Raises `BadInput`.

    A day without a year is the next one.
    """
    text = text.strip()
    if not text:
        return None
    until = parse_bound(text, now=now, is_end=True)
    if until > now:
        return until
    for year in (now.year, now.year + 1):
        try:
            of_year = parse_bound(f"{text} {year}", now=now, is_end=True)
        except BadInput:
            # It has a year, or is not a day.
            continue
        if of_year > now:
            return of_year
    return until


def _administered_guilds(user: User) -> QuerySet[Guild]:
    scope = scope_for(user, GIVE_ROLES)
    return Guild.objects.all() if scope.every_guild else Guild.objects.filter(pk__in=scope.guilds)
