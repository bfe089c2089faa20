"""Sums of what the steps of purges have done, kept by the transactions that count steps.

Pages and checks read these: a purge of 50,000 channels has as many steps.
"""

from __future__ import annotations

from django.db import models

from moderation.models.purges import Purge


class PurgePeriod(models.Model):
    """Sums of a purge's counted steps in one bucket number, over all channels.

    undone: messages that the purge no longer deletes, because they were restored or withdrawn.
    """

    pk = models.CompositePrimaryKey("purge_id", "bucket")
    # The primary key's index begins with it.
    purge = models.ForeignKey(Purge, on_delete=models.PROTECT, related_name="periods", db_index=False)
    bucket = models.IntegerField()
    deleted = models.BigIntegerField(db_default=0, default=0)
    already_gone = models.BigIntegerField(db_default=0, default=0)
    undone = models.BigIntegerField(db_default=0, default=0)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"bucket {self.bucket} of purge {self.purge_id}"


class PurgeDay(models.Model):
    """Number of messages that a purge deleted on one day (UTC). last_at: when the last of them were counted."""

    pk = models.CompositePrimaryKey("purge_id", "day")
    # The primary key's index begins with it.
    purge = models.ForeignKey(Purge, on_delete=models.PROTECT, related_name="days", db_index=False)
    day = models.DateField()
    deleted = models.BigIntegerField()
    last_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        indexes = (models.Index(fields=("day",), include=("deleted", "last_at"), name="purge_days_by_day"),)

    def __str__(self) -> str:
        return f"purge {self.purge_id} on {self.day}"
