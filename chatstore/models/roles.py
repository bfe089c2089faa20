"""Roles given to staff accounts."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from chatstore.domain.roles import INSTALLATION_ROLES, Grant, Role, Scope
from chatstore.models.functions import ClockTimestamp


class RoleGrantQuerySet(models.QuerySet["RoleGrant"]):
    """Grants by whether they apply."""

    def in_force(self) -> Self:
        """Grants that apply now: neither taken nor past their end."""
        return self.filter(Q(until=None) | Q(until__gt=ClockTimestamp()), taken_at=None)

    def within(self, scope: Scope) -> Self:
        """Grants for guilds and channels of a scope. Those for the whole installation are within none."""
        return self.filter(_is_within(scope))

    def outside(self, scope: Scope) -> Self:
        """All other grants."""
        return self.exclude(_is_within(scope))

    def for_direct_messages(self) -> Self:
        """Grants that include direct messages, all of them or one."""
        of_all = Q(role=Role.DIRECT) | Q(role=Role.ADMIN, guild=None, channel=None)
        return self.filter(of_all | Q(channel__isnull=False, channel__guild=None))


def _is_within(scope: Scope) -> Q:
    return Q(guild_id__in=scope.guilds) | Q(channel__guild_id__in=scope.guilds) | Q(channel_id__in=scope.channels)


class RoleGrant(models.Model):
    """A role of an account in a guild, in a channel, or, without either, in the whole installation.

    Rows are kept: a role that is taken has the time and the account that took it. until: exclusive; None for no end.
    given_by, taken_by: None if a migration or the end of the time did it.
    """

    account = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="role_grants")
    role = models.CharField(max_length=20, choices=[(role.value, role.value) for role in Role])
    guild = models.ForeignKey(
        "chatstore.Guild", null=True, blank=True, on_delete=models.PROTECT, related_name="role_grants"
    )
    channel = models.ForeignKey(
        "chatstore.Channel", null=True, blank=True, on_delete=models.PROTECT, related_name="role_grants"
    )
    until = models.DateTimeField(null=True)
    given_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    given_at = models.DateTimeField(db_default=Now())
    taken_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    taken_at = models.DateTimeField(null=True)

    objects = RoleGrantQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        default_permissions = ("add", "view")
        constraints = (
            models.UniqueConstraint(
                fields=("account", "role", "guild", "channel"),
                condition=Q(taken_at=None),
                nulls_distinct=False,
                name="role_given_once",
            ),
            models.CheckConstraint(condition=Q(guild=None) | Q(channel=None), name="role_for_guild_or_channel"),
            models.CheckConstraint(
                condition=~Q(role__in=sorted(role.value for role in INSTALLATION_ROLES)) | Q(guild=None, channel=None),
                name="role_for_installation",
            ),
            models.CheckConstraint(
                condition=Q(until=None) | Q(until__gt=F("given_at")), name="role_ends_after_it_begins"
            ),
        )

    def __str__(self) -> str:
        return f"{self.role} of account {self.account_id}"

    @property
    def grant(self) -> Grant:
        """The value that rights are computed from."""
        return Grant(Role(self.role), guild_id=self.guild_id, channel_id=self.channel_id)
