"""Notes of moderators about chat users."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from chatstore.models.ids import NextId


class Note(models.Model):
    """A moderator's note about a chat user. It may refer to a message, or to a purge."""

    id = models.BigIntegerField(primary_key=True, db_default=NextId())
    user_id = models.BigIntegerField()
    text = models.TextField()
    written_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    written_at = models.DateTimeField(db_default=Now())
    channel_id = models.BigIntegerField(null=True)
    message_id = models.BigIntegerField(null=True)
    purge = models.ForeignKey("moderation.Purge", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)

    class Meta:
        ordering = ("-id",)
        default_permissions = ("add", "view")
        indexes = (models.Index(fields=("user_id", "id"), name="note_by_user"),)

    def __str__(self) -> str:
        return f"note {self.id}"
