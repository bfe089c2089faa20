"""Giving and removing roles. Every act is recorded in its transaction; rows are kept.

An account may give what it has itself, and only administrators give at all. Sessions of an account that loses a role
end at once. Getting one ends none, but for those without a second factor if the role enforces it. A role whose time has
passed gives nothing from then on.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import OuterRef, Q, Subquery
from django.utils import timezone

from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.domain.roles import INSTALLATION_ROLES, Grant, Role, may_give
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from chatstore.models import Channel, Guild, RoleGrant
from chatstore.models.functions import ClockTimestamp
from chatstore.models.roles import RoleGrantQuerySet
from chatstore.models.users import User
from chatstore.operations.coordination.account_lock import lock_account, lock_accounts
from chatstore.operations.rights import (
    GIVE_ROLES,
    MAX_GRANTS,
    VIEW_ROLES,
    forget_grants,
    grants_of,
    require,
    scope_for,
)
from moderation.models import Invitation
from moderation.operations.access.audit import record_action
from moderation.operations.access.sessions import end_all_sessions, end_sessions_without_factor
from moderation.operations.access.visibility import Actor

ROLES_PER_PAGE = 50


@dataclass(frozen=True, slots=True)
class RolePage:
    """Page of given roles, newest first. older: exclusive cursor of the next page, or None."""

    grants: Sequence[RoleGrant]
    older: int | None


def list_roles(user: Actor, *, account: str = "", with_past: bool = False, before: int | None = None) -> RolePage:
    """Return the roles given where the user may see them, with `invited_until` of accounts whose link was not used.

    account: a user name. Raises `Forbidden`, `BadInput`.
    """
    require(user, VIEW_ROLES)
    if "\x00" in account:
        raise BadInput(_("A name cannot contain a NUL character. Remove it."))
    rows = _visible(user).select_related("account", "guild", "channel__guild", "given_by", "taken_by").order_by("-id")
    unused = Invitation.objects.filter(account=OuterRef("account"), ended_at=None)
    rows = rows.annotate(invited_until=Subquery(unused.values("expires_at")))
    rows = rows if with_past else rows.in_force()
    rows = rows.filter(account__username=account) if account else rows
    rows = rows if before is None else rows.filter(pk__lt=before)
    found = list(rows[: ROLES_PER_PAGE + 1])
    shown = found[:ROLES_PER_PAGE]
    return RolePage(shown, shown[-1].pk if len(found) > len(shown) else None)


def give_roles(
    account: User, grants: Sequence[Grant], *, actor: User, until: dt.datetime | None = None
) -> list[RoleGrant]:
    """Give an account roles, several for some channels of a guild; those that it has already get the new end.

    Raises `Forbidden`, `NotFound` for a guild or channel that the actor cannot see, and `BadInput`.
    """
    require(actor, GIVE_ROLES)
    if until is not None and until <= timezone.now():
        raise BadInput(_("The end must be in the future."))
    if account.is_superuser:
        raise BadInput(_("A superuser has every right. Roles have no effect on it."))
    if account.pk == actor.pk:
        raise BadInput(_("You cannot give yourself a role. Ask another administrator."))
    with transaction.atomic():
        # The actor's roles as they are now: another administrator may be taking them.
        present_actor = lock_accounts({account.pk, actor.pk})[actor.pk]
        for grant in grants:
            check_grant(grant, actor=present_actor)
        _check_until(grants, until, actor=present_actor)
        given = [_give(account, grant, actor=actor, until=until) for grant in grants]
        if RoleGrant.objects.filter(account=account).in_force().count() > MAX_GRANTS:
            raise BadInput(
                ngettext_lazy(
                    "An account can have at most %(count)s role at a time. Give it for whole servers.",
                    "An account can have at most %(count)s roles at a time. Give them for whole servers.",
                    MAX_GRANTS,
                )
            )
        if any(grant.role in settings.SECOND_FACTOR_ROLES for grant in grants):
            end_sessions_without_factor(account)
    forget_grants(account)
    return given


def take_role(grant_id: int, *, actor: User) -> RoleGrant:
    """Remove a role. Idempotent. Raises `Forbidden`, `NotFound`, and `BadInput` for one's own role of administrator."""
    require(actor, GIVE_ROLES)
    with transaction.atomic():
        grants = _visible(actor, GIVE_ROLES).filter(pk=grant_id)
        owner = grants.values_list("account", flat=True).first()
        if owner is None:
            raise NotFound(_("There is no role %(id)s.", id=str(grant_id)))
        # Their roles as they are now: of two people who take each other's at the same time, one succeeds.
        present_actor = lock_accounts({owner, actor.pk})[actor.pk]
        row = grants.select_for_update(of=("self",)).get()
        _check_may_give(row.grant, row.channel, present_actor)
        if row.account_id == actor.pk and row.role == Role.ADMIN:
            raise BadInput(_("You cannot take your own role as administrator. Ask another administrator."))
        if row.taken_at is None:
            RoleGrant.objects.filter(pk=grant_id).update(taken_at=ClockTimestamp(), taken_by=actor)
            _record("role_taken", row, actor=actor)
            end_all_sessions([row.account_id])
            row.refresh_from_db()
    forget_grants(row.account)
    return row


def _check_until(grants: Sequence[Grant], until: dt.datetime | None, *, actor: User) -> None:
    """Raise `BadInput` if a role would last longer than every role by which the actor gives it."""
    if actor.is_superuser:
        return
    own = list(RoleGrant.objects.filter(account=actor, role=Role.ADMIN).in_force())
    channels = [grant.channel_id for grant in grants if grant.channel_id is not None]
    guilds = dict(Channel.objects.filter(pk__in=channels).order_by().values_list("pk", "guild_id"))
    for grant in grants:
        guild_id = None if grant.channel_id is None else guilds.get(grant.channel_id)
        # One that does not reach there does not give it, however long it lasts.
        ends = [row.until for row in own if may_give([row.grant], grant, guild_id=guild_id)]
        last = max((end for end in ends if end is not None), default=timezone.now())
        if None not in ends and (until is None or until > last):
            raise BadInput(_("Your own role ends earlier. Enter an end no later than yours."))


def replace_roles(account: User, grants: Collection[Grant], *, among: Collection[Grant]) -> None:
    """Set which of some roles an account has, as single sign-on does; the entries name no actor.

    Roles for guilds that do not exist are left out. Must be called inside a transaction.
    """
    guilds = {grant.guild_id for grant in grants if grant.guild_id is not None}
    known = set(Guild.objects.filter(pk__in=guilds).values_list("pk", flat=True))
    wanted = {grant for grant in grants if grant.guild_id is None or grant.guild_id in known}
    lock_account(account)
    rows = {row.grant: row for row in RoleGrant.objects.filter(account=account).in_force()}
    lost = [row for grant, row in rows.items() if grant in among and grant not in wanted]
    new = wanted.difference(rows)
    for row in lost:
        RoleGrant.objects.filter(pk=row.pk).update(taken_at=ClockTimestamp())
        _record("role_taken", row, actor=None)
    for grant in sorted(new, key=lambda grant: (grant.role, grant.guild_id or 0)):
        _give(account, grant, actor=None, until=None)
    if lost:
        end_all_sessions([account.pk])
    elif any(grant.role in settings.SECOND_FACTOR_ROLES for grant in new):
        end_sessions_without_factor(account)
    forget_grants(account)


def check_grant(grant: Grant, *, actor: User) -> None:
    """Raise `NotFound`, `BadInput` or `Forbidden` unless the actor may give a role there."""
    if grant.role in INSTALLATION_ROLES and not grant.is_installation_wide:
        raise BadInput(_("This role can only be given for the whole installation."))
    scope, channel = scope_for(actor, GIVE_ROLES), None
    if grant.guild_id is not None and not (
        scope.includes_guild(grant.guild_id) and Guild.objects.filter(pk=grant.guild_id).exists()
    ):
        raise NotFound(_("There is no server %(id)s.", id=str(grant.guild_id)))
    if grant.channel_id is not None:
        channel = Channel.objects.filter(pk=grant.channel_id).first()
        if channel is None or not scope.includes(channel.pk, channel.guild_id):
            raise NotFound(_("There is no channel %(id)s.", id=str(grant.channel_id)))
    _check_may_give(grant, channel, actor)


def _check_may_give(grant: Grant, channel: Channel | None, actor: User) -> None:
    if not may_give(grants_of(actor), grant, guild_id=channel.guild_id if channel else None):
        raise Forbidden(_("You can only give and remove roles with rights that you have there yourself."))


def _visible(user: Actor, right: str = VIEW_ROLES) -> RoleGrantQuerySet:
    scope = scope_for(user, right)
    rows = RoleGrant.objects.all()
    if scope.is_everything:
        return rows
    if scope.every_guild:
        return rows.filter(Q(channel=None) | Q(channel__guild__isnull=False) | Q(channel_id__in=scope.channels))
    return rows.within(scope)


def _give(account: User, grant: Grant, *, actor: User | None, until: dt.datetime | None) -> RoleGrant:
    place: dict[str, Any] = {"guild_id": grant.guild_id, "channel_id": grant.channel_id}
    same = RoleGrant.objects.filter(account=account, role=grant.role, taken_at=None, **place)
    found = same.first()
    if found is not None and found.until == until:
        return found
    # One that has ended, or ends at another time, is replaced: rows are never changed otherwise.
    same.update(taken_at=ClockTimestamp(), taken_by=actor)
    row = RoleGrant.objects.create(account=account, role=grant.role, until=until, given_by=actor, **place)
    row.refresh_from_db()
    _record("role_given", row, actor=actor)
    return row


def _record(action: str, row: RoleGrant, *, actor: User | None) -> None:
    details = {"role": row.role, "account": row.account.get_username(), "grant": str(row.pk)}
    if row.guild is not None:
        details["guild"] = str(row.guild_id)
    if row.until is not None:
        details["until"] = row.until.isoformat()
    if actor is None:
        details["by"] = "single sign-on"
    record_action(action, actor=actor, channel_id=row.channel_id, guild_id=row.guild_id, details=details)
