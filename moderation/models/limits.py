"""Limits on what one person deletes, and the approvals of purges above them."""

from __future__ import annotations

import datetime as dt
from typing import Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from chatstore.domain.roles import Role
from chatstore.models import Guild
from chatstore.models.ids import NextId
from moderation.domain.limits import LIMITED_ROLES, MAX_LIMIT, Limits
from moderation.domain.states import ApprovalDecision, PurgeState

REQUEST_LIFETIME = dt.timedelta(hours=24)
"""A request for another person's decision ends after it, undecided."""


def _limit() -> models.IntegerField[int | None, int | None]:
    return models.IntegerField(null=True, validators=[MinValueValidator(1), MaxValueValidator(MAX_LIMIT)])


class PurgeLimits(models.Model):
    """Limits of a role in a guild, or, without one, everywhere, in direct messages too. None: no limit.

    messages_without_approval: of one purge; another person approves what has more. open_previews: of one person.
    """

    guild = models.ForeignKey(Guild, null=True, on_delete=models.CASCADE, related_name="purge_limits")
    role = models.CharField(max_length=20, choices=[(role.value, role.value) for role in LIMITED_ROLES])
    messages_without_approval = _limit()
    purges_per_hour = _limit()
    messages_per_hour = _limit()
    open_previews = _limit()

    class Meta:
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(fields=("guild", "role"), nulls_distinct=False, name="limits_of_role_once"),
        )

    def __str__(self) -> str:
        return f"limits of {self.role} in {self.guild_id or 'all guilds'}"

    @property
    def limited_role(self) -> Role:
        return Role(self.role)

    @property
    def limits(self) -> Limits:
        """The value that is compared and shown."""
        return Limits(
            messages_without_approval=self.messages_without_approval,
            purges_per_hour=self.purges_per_hour,
            messages_per_hour=self.messages_per_hour,
            open_previews=self.open_previews,
        )


class PurgeApprovalQuerySet(models.QuerySet["PurgeApproval"]):
    """Requests by whether they can be decided."""

    def undecided(self) -> Self:
        """Requests without a decision; they may have expired."""
        return self.filter(decision=ApprovalDecision.NONE)

    def open(self) -> Self:
        """Requests that can be approved now: the preview is the one that was requested, and a day has not passed."""
        return self.undecided().filter(
            requested_at__gt=Now() - REQUEST_LIFETIME,
            purge__state=PurgeState.READY,
            purge__manifest_hash=F("manifest_hash"),
        )


class PurgeApproval(models.Model):
    """Request to confirm a purge above its moderator's limit, and the decision of another person.

    manifest_hash: what is approved. decided_by: None for a request that was withdrawn or expired.
    """

    id = models.BigIntegerField(primary_key=True, db_default=NextId())
    purge = models.ForeignKey("moderation.Purge", on_delete=models.PROTECT, related_name="approvals", db_index=False)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    requested_at = models.DateTimeField(db_default=Now())
    reason = models.TextField()
    manifest_hash = models.BinaryField()
    decision = models.CharField(
        max_length=10, choices=ApprovalDecision.choices(), default=ApprovalDecision.NONE, blank=True
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    decided_at = models.DateTimeField(null=True)
    decision_reason = models.TextField(default="", db_default="", blank=True)

    objects = PurgeApprovalQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        default_permissions = ()
        permissions = (("approve_purge", "Can approve purges above the limit of their moderator"),)
        indexes = (
            models.Index(fields=("purge", "id"), name="approval_by_purge"),
            models.Index(fields=("requested_at",), condition=Q(decision=""), name="approval_undecided"),
        )
        constraints = (
            models.UniqueConstraint(fields=("purge",), condition=Q(decision=""), name="one_undecided_approval"),
            models.CheckConstraint(
                condition=Q(decided_by=None) | ~Q(decided_by=F("requested_by")), name="approved_by_another"
            ),
            models.CheckConstraint(
                condition=~Q(decision__in=(ApprovalDecision.APPROVED, ApprovalDecision.REJECTED))
                | Q(decided_by__isnull=False),
                name="approval_decided_by_a_person",
            ),
        )

    def __str__(self) -> str:
        return f"approval {self.id} of purge {self.purge_id}"

    @property
    def expires_at(self) -> dt.datetime:
        """When it can no longer be approved."""
        return self.requested_at + REQUEST_LIFETIME
