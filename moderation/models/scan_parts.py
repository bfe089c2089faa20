"""Parts of running scans, which workers process side by side."""

from __future__ import annotations

from typing import Self

from django.db import models

from moderation.models.purges import Purge
from moderation.models.steps import FREE, LEASED


class ScanPartQuerySet(models.QuerySet["ScanPart"]):
    """Parts by what can be done with them."""

    def free(self) -> Self:
        """Parts that no worker has under lease."""
        return self.filter(FREE)

    def leased(self) -> Self:
        """Parts that a worker has under lease."""
        return self.filter(LEASED)


class ScanPart(models.Model):
    """Buckets of a scan's scope that one worker at a time processes; deleted once all of them are stored.

    A part is claimed by its token until its lease expires. channel_id, bucket: the first bucket that it was listed
    with. buckets: those that are left to scan, [[channel id, bucket, number of rows by the ledger or null], …].
    is_split: other parts have further buckets of its channel, which is the only one; otherwise it has all that were
    left of each of its channels.
    """

    pk = models.CompositePrimaryKey("purge_id", "channel_id", "bucket")
    # The primary key's index begins with it.
    purge = models.ForeignKey(Purge, on_delete=models.PROTECT, related_name="scan_parts", db_index=False)
    channel_id = models.BigIntegerField()
    bucket = models.IntegerField()
    buckets = models.JSONField()
    is_split = models.BooleanField()
    token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)

    objects = ScanPartQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"part of the scan of purge {self.purge_id} from bucket {self.bucket} of channel {self.channel_id} on"
