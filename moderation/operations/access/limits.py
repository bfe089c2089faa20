"""Limits of roles in guilds: which apply to a person, and setting them. Every change is an entry in the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q, QuerySet

from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.roles import Role
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Guild
from chatstore.models.users import User
from chatstore.operations.rights import GIVE_ROLES, VIEW_ROLES, grants_of, require, scope_for
from moderation.domain.limits import LIMITED_ROLES, LIMITS, MAX_LIMIT, Limits, PlaceLimits, role_in
from moderation.models import PurgeLimits
from moderation.operations.access.audit import record_action
from moderation.operations.access.visibility import Actor

LIMITS_PER_PAGE = 50

EVERYWHERE = _("the whole installation")


@dataclass(frozen=True, slots=True)
class LimitsPage:
    """Page of the limits that are set, those set first first. more: exclusive cursor of the next page, or None."""

    rows: Sequence[PurgeLimits]
    more: int | None


def limits_of(user: Actor, guild_ids: Sequence[int] | None) -> list[PlaceLimits]:
    """Return the limits that apply to a person in the guilds of a purge, in one statement; for administrators in none.

    guild_ids: None if they are not known yet; then all limits of their roles apply.
    """
    grants = grants_of(user)
    if any(grant.role is Role.ADMIN and grant.is_installation_wide for grant in grants):
        return []
    rows = PurgeLimits.objects.select_related("guild").order_by("pk")
    if guild_ids is not None:
        rows = rows.filter(Q(guild=None) | Q(guild_id__in=guild_ids))
    found = list(rows)
    if not found:
        return []
    anywhere = {0, *(row.guild_id for row in found), *(grant.guild_id for grant in grants)} - {None}
    roles = {guild_id: role_in(grants, guild_id or 0) for guild_id in (anywhere if guild_ids is None else guild_ids)}
    return [
        PlaceLimits(row.guild_id, row.guild.name if row.guild else EVERYWHERE, row.limits)
        for row in found
        if row.role in (roles.values() if row.guild_id is None else [roles.get(row.guild_id)])
    ]


def list_limits(user: Actor, *, after: int | None = None) -> LimitsPage:
    """Return the limits where the user may see roles. Raises `Forbidden`."""
    require(user, VIEW_ROLES)
    rows = _within(user, VIEW_ROLES).select_related("guild").order_by("pk")
    found = list((rows if after is None else rows.filter(pk__gt=after))[: LIMITS_PER_PAGE + 1])
    shown = found[:LIMITS_PER_PAGE]
    return LimitsPage(shown, shown[-1].pk if len(found) > len(shown) else None)


def cursor_to(user: Actor, limits_id: int) -> int | None:
    """Return the cursor of a page that shows certain limits, as its last ones; None for the first page.

    The first one also shows those that are among its own.
    """
    until = _within(user, VIEW_ROLES).filter(pk__lte=limits_id).order_by("-pk").values_list("pk", flat=True)
    return next(iter(until[LIMITS_PER_PAGE : LIMITS_PER_PAGE + 1]), None)


def limits_in(user: Actor, limits_id: int) -> PurgeLimits | None:
    """Return limits that the user may change, to show them in the form."""
    return _within(user, GIVE_ROLES).select_related("guild").filter(pk=limits_id).first()


def set_limits(role: Role, guild_id: int | None, limits: Limits, *, actor: User) -> int | None:
    """Set the limits of a role in a guild, or in the whole installation; without any, the role has no limits there.

    Return their id, or None. Raises `Forbidden`, `NotFound` for a guild that the actor does not administer, `BadInput`.
    """
    require(actor, GIVE_ROLES)
    if role not in LIMITED_ROLES:
        raise BadInput(_("Only moderators and leads have limits. Choose one of these roles."))
    if any(not 1 <= limit <= MAX_LIMIT for limit in limits.as_json().values()):
        raise BadInput(_("A limit is a whole number from 1 to %(most)s. Leave it empty for no limit.", most=MAX_LIMIT))
    scope = scope_for(actor, GIVE_ROLES)
    if not (scope.is_everything if guild_id is None else scope.includes_guild(guild_id)):
        raise NotFound(_("You can only set limits of servers that you administer."))
    with transaction.atomic():
        if guild_id is not None and not Guild.objects.select_for_update(no_key=True).filter(pk=guild_id).exists():
            raise NotFound(_("There is no server %(id)s.", id=str(guild_id)))
        # Locked by the insert: another administrator may set the first limits of the same role at the same time.
        PurgeLimits.objects.bulk_create(
            [PurgeLimits(guild_id=guild_id, role=role)],
            update_conflicts=True,
            unique_fields=["guild", "role"],
            update_fields=["role"],
        )
        stored = PurgeLimits.objects.filter(Q(guild_id=guild_id), role=role)
        row = stored.get()
        before, after = row.limits.as_json(), limits.as_json()
        if after:
            stored.update(**{name: after.get(name) for name in LIMITS})
        else:
            stored.delete()
        if before != after:
            details = {"role": role.value, "before": _as_words(before), "after": _as_words(after)}
            record_action("limits_changed", actor=actor, guild_id=guild_id, details=details)
    return row.pk if after else None


def _as_words(limits: dict[str, int]) -> dict[str, str]:
    return {name: str(limit) for name, limit in limits.items()}


def _within(user: Actor, right: str) -> QuerySet[PurgeLimits]:
    scope = scope_for(user, right)
    rows = PurgeLimits.objects.all()
    return rows if scope.is_everything else rows.filter(guild_id__in=scope.guilds)
