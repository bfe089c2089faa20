"""Audit log: one row per action, written in the transaction of the action, never changed.

The database refuses changes (migration 0024): the application's role may only insert and read, and a trigger stops the
owner of the tables too.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _

from chatstore.models.ids import NextId


class AuditEntry(models.Model):
    """Action with its actor, time and subject. `actor` is empty for automatic actions.

    guild_id: of the channel, or of all channels of the purge. chat_user_id: the one chat user whom the action concerns.
    ids: the affected messages, packed, for actions that may affect very many. request_id: of the request that acted, or
    that woke up the worker; empty for commands and for what a worker found by itself.
    """

    id = models.BigIntegerField(_("ID"), primary_key=True, db_default=NextId())
    at = models.DateTimeField(db_default=Now())
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    action = models.CharField(max_length=40)
    purge = models.ForeignKey(
        "moderation.Purge", null=True, on_delete=models.PROTECT, related_name="audit", db_index=False
    )
    channel_id = models.BigIntegerField(null=True)
    guild_id = models.BigIntegerField(null=True)
    chat_user_id = models.BigIntegerField(null=True)
    details = models.JSONField(default=dict)
    ids = models.BinaryField(null=True)
    request_id = models.CharField(max_length=64, default="", db_default="", blank=True)

    class Meta:
        ordering = ("-id",)
        default_permissions = ("view",)
        verbose_name_plural = "audit entries"
        # Pages list the newest of each.
        indexes = (
            models.Index(fields=("action", "id"), name="audit_by_action"),
            models.Index(fields=("purge", "id"), name="audit_by_purge", condition=Q(purge__isnull=False)),
            models.Index(fields=("actor", "id"), name="audit_by_actor", condition=Q(actor__isnull=False)),
            models.Index(fields=("channel_id", "id"), name="audit_by_channel", condition=Q(channel_id__isnull=False)),
            models.Index(fields=("guild_id", "id"), name="audit_by_guild", condition=Q(guild_id__isnull=False)),
            models.Index(
                fields=("chat_user_id", "id"), name="audit_by_chat_user", condition=Q(chat_user_id__isnull=False)
            ),
        )

    def __str__(self) -> str:
        return f"{self.action.replace('_', ' ')} at {date_format(localtime(self.at), 'DATETIME_FORMAT')}"


class AuditLink(models.Model):
    """Position of an entry in the hash chain (`moderation/domain/audit_chain.py`). Append-only, as the entries.

    entry_id: not a foreign key, so that the link of a missing entry remains as evidence. Positions have no gaps.
    """

    position = models.BigIntegerField(primary_key=True)
    entry_id = models.BigIntegerField(unique=True)
    version = models.SmallIntegerField()
    hash = models.BinaryField()
    linked_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"link {self.position}"


class UnlinkedEntry(models.Model):
    """Entry that has no link yet. A trigger inserts the row together with the entry; the linker deletes it."""

    entry_id = models.BigIntegerField(primary_key=True)

    class Meta:
        default_permissions = ()
        verbose_name_plural = "unlinked entries"

    def __str__(self) -> str:
        return f"unlinked entry {self.entry_id}"
