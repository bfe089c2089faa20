"""What keeps writers apart: the channel lock, the stamps of buckets, the leases of worker numbers."""

from __future__ import annotations

from django.db import models


class ChannelLock(models.Model):
    """Which job holds a channel. A row is a hold; only an import's has a lease, others do not lapse."""

    channel_id = models.BigIntegerField(primary_key=True)
    job = models.CharField(max_length=60)
    since = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.job} holds channel {self.channel_id}"


class BucketStamp(models.Model):
    """The last stamp (µs) that was issued to a job for a channel's bucket; only ever grows."""

    pk = models.CompositePrimaryKey("channel_id", "bucket")
    channel_id = models.BigIntegerField()
    bucket = models.IntegerField()
    stamp = models.BigIntegerField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"stamp {self.stamp} of bucket {self.bucket} of channel {self.channel_id}"


class WorkerLease(models.Model):
    """A snowflake worker number and the process that leases it."""

    worker = models.SmallIntegerField(primary_key=True)
    token = models.UUIDField()
    lease_until = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"snowflake worker {self.worker}"
