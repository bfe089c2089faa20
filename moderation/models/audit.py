"""Audit log: one row per action, written in the transaction of the action, never changed."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from moderation.models.ids import NextId


class AuditEntry(models.Model):
    """Action with its actor, time and subject. `actor` is empty for automatic actions.

    ids: the affected messages, packed, for actions that may affect very many.
    """

    id = models.BigIntegerField(primary_key=True, db_default=NextId())
    at = models.DateTimeField(db_default=Now())
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    action = models.CharField(max_length=40)
    purge = models.ForeignKey("moderation.Purge", null=True, on_delete=models.PROTECT, related_name="audit")
    channel_id = models.BigIntegerField(null=True)
    details = models.JSONField(default=dict)
    ids = models.BinaryField(null=True)

    class Meta:
        ordering = ("-id",)
        default_permissions = ("view",)
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} at {self.at:%Y-%m-%d %H:%M:%S}"
