"""Rights of staff: the one place that answers what an account may do, and where.

`require` and `has_perm` ask whether an account has a right anywhere; `scope_for` asks where, and `in_scope` turns the
answer into a condition of a query. What an account has is read with one statement per request and kept on the account.
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import Q, QuerySet

from chatstore.domain.errors import Forbidden, NotFound
from chatstore.domain.roles import EVERYTHING, GIVE_ROLES, VIEW_CHANNELS, VIEW_ROLES, Grant, Role, Scope, scope_of
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, Guild, RoleGrant

__all__ = [
    "GIVE_ROLES",
    "MAINTAIN",
    "READ_HEALTH",
    "SCHEDULE",
    "VIEW_CHANNELS",
    "VIEW_ROLES",
    "forget_grants",
    "grants_of",
    "guilds_for",
    "in_scope",
    "require",
    "require_channel",
    "restrict",
    "scope_for",
]

READ_HEALTH = "chatstore.view_finding"
"""View health pages, findings, runs and metrics."""

MAINTAIN = "chatstore.add_jobrun"
"""Start, stop and repeat jobs: probe, measure, repair, compact."""

SCHEDULE = "chatstore.change_jobschedule"
"""Change the schedules of jobs."""

MAX_GRANTS = 200
"""Roles of one account at a time. They are conditions of queries, so there must not be thousands."""

_CACHE = "_role_grants"

RowsT = TypeVar("RowsT", bound=QuerySet[Any])


def require(user: AbstractUser | AnonymousUser, permission: str) -> None:
    """Raise `Forbidden` unless the user has the permission ("app.codename") anywhere."""
    if not user.has_perm(permission):
        raise Forbidden(_("Your account does not have permission to do this. Ask an administrator."))


def grants_of(user: AbstractUser | AnonymousUser) -> tuple[Grant, ...]:
    """Return the roles that apply to an account now; of a superuser, that of an administrator."""
    if user.pk is None or not user.is_active:
        return ()
    if user.is_superuser:
        return (Grant(Role.ADMIN),)
    found: tuple[Grant, ...] | None = getattr(user, _CACHE, None)
    if found is None:
        rows = RoleGrant.objects.filter(account_id=user.pk).in_force().order_by()
        found = tuple(Grant(Role(row[0]), *row[1:]) for row in rows.values_list("role", "guild_id", "channel_id"))
        setattr(user, _CACHE, found)
    return found


def forget_grants(user: AbstractUser) -> None:
    """Have the roles of an account read again, because they have changed."""
    user.__dict__.pop(_CACHE, None)


def scope_for(user: AbstractUser | AnonymousUser, right: str) -> Scope:
    """Return where an account has a right."""
    return EVERYTHING if user.is_active and user.is_superuser else scope_of(grants_of(user), right)


def in_scope(scope: Scope, *, guild: str, channel: str) -> Q:
    """Return the condition for rows of channels within a scope. None for a scope of everything: plans stay as they are.

    guild, channel: names of the columns with their ids, "guild_id" and "pk".
    """
    if scope.is_everything:
        return Q()
    if scope.is_nothing:
        return Q(pk__in=())
    condition = Q(**{f"{guild}__isnull": False}) if scope.every_guild else Q()
    if scope.guilds:
        condition |= Q(**{f"{guild}__in": sorted(scope.guilds)})
    if scope.direct:
        condition |= Q(**{f"{guild}__isnull": True})
    if scope.channels:
        condition |= Q(**{f"{channel}__in": sorted(scope.channels)})
    return condition


def restrict(rows: RowsT, scope: Scope, *, guild: str, channel: str) -> RowsT:
    """Return the rows of channels within a scope."""
    return rows if scope.is_everything else rows.filter(in_scope(scope, guild=guild, channel=channel))


def guilds_for(user: AbstractUser | AnonymousUser, right: str) -> QuerySet[Guild]:
    """Return the guilds in which an account has a right, in all channels or in some."""
    scope = scope_for(user, right)
    if scope.every_guild:
        return Guild.objects.all()
    some = Channel.objects.filter(pk__in=scope.channels).order_by().values("guild_id")
    return Guild.objects.filter(Q(pk__in=scope.guilds) | Q(pk__in=some))


def require_channel(user: AbstractUser | AnonymousUser, right: str, channel_id: int) -> None:
    """Raise `NotFound` unless the account has a right in a channel. Raises `Forbidden` if it has it nowhere."""
    require(user, right)
    scope = scope_for(user, right)
    if scope.is_everything:
        return
    if not Channel.objects.filter(in_scope(scope, guild="guild_id", channel="pk"), pk=channel_id).exists():
        raise NotFound(_("There is no channel %(id)s.", id=str(channel_id)))
