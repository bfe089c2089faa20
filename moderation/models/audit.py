"""The audit: one row an act, written in the act's own transaction, never changed."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from moderation.models.ids import NextId


class AuditEntry(models.Model):
    """Who did what, when, to what; `actor` is empty for the scheduler's own acts.

    ids: the messages that it was about, packed, of acts that may be about very many.
    """

    id = models.BigIntegerField(primary_key=True, db_default=NextId())
    at = models.DateTimeField(db_default=Now())
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    act = models.CharField(max_length=40)
    purge = models.ForeignKey("moderation.Purge", null=True, on_delete=models.PROTECT, related_name="audit")
    channel_id = models.BigIntegerField(null=True)
    details = models.JSONField(default=dict)
    ids = models.BinaryField(null=True)

    class Meta:
        ordering = ("-id",)
        default_permissions = ("view",)
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.act} at {self.at:%Y-%m-%d %H:%M:%S}"
