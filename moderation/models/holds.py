"""Holds: messages that purges must not delete."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from chatstore.models.ids import NextId


class Hold(models.Model):
    """Legal hold. Messages that it covers are not deleted until it is lifted.

    author_id alone: in every channel. channel_id alone: every message in it. Both: the user's messages in the
    channel. message_id: that message, in channel_id.
    """

    id = models.BigIntegerField(primary_key=True, db_default=NextId())
    author_id = models.BigIntegerField(null=True)
    channel_id = models.BigIntegerField(null=True)
    message_id = models.BigIntegerField(null=True)
    reason = models.TextField()
    placed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    placed_at = models.DateTimeField(db_default=Now())
    lifted_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    lifted_at = models.DateTimeField(null=True)
    lift_reason = models.TextField(default="", db_default="")

    class Meta:
        ordering = ("-id",)
        default_permissions = ("add", "change", "view")
        indexes = (
            models.Index(fields=("channel_id", "lifted_at"), name="hold_by_channel"),
            models.Index(fields=("author_id", "lifted_at"), name="hold_by_author"),
            models.Index(fields=("id",), name="hold_in_force", condition=Q(lifted_at=None)),
        )
        constraints = (
            models.CheckConstraint(
                name="hold_names_something",
                condition=Q(author_id__isnull=False) | Q(channel_id__isnull=False),
            ),
            models.CheckConstraint(
                name="held_message_has_channel",
                condition=Q(message_id=None) | Q(author_id=None, channel_id__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"hold {self.id}"
