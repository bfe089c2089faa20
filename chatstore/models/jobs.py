"""Coordination of writers: channel locks, the last stamp of each bucket, leases of worker numbers."""

from __future__ import annotations

from django.db import models


class ChannelLock(models.Model):
    """The job that has locked a channel. Only an import's lock has a lease; the others do not expire."""

    channel_id = models.BigIntegerField(primary_key=True)
    job = models.CharField(max_length=60)
    since = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        indexes = (models.Index(fields=("job",), name="lock_by_job"),)

    def __str__(self) -> str:
        return f"channel {self.channel_id}, locked by {self.job}"


class BucketStamp(models.Model):
    """The last stamp (write timestamp in µs) issued to a job for a channel's bucket; only ever grows."""

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
