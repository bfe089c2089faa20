"""A purge, its frozen manifest and its steps. Postgres is the queue: these rows are all there is.

`moderation.domain.states` says which moves exist; each move is a conditional update.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from moderation.domain.states import PurgeState, StepKind, StepState
from moderation.models.ids import NextId


class Purge(models.Model):
    """One removal: a selection, the manifest it matched, and who confirmed it and why."""

    id = models.BigIntegerField(primary_key=True, db_default=NextId())
    state = models.CharField(max_length=20, choices=PurgeState.choices(), default=PurgeState.DRAFT)
    selection = models.JSONField()
    moderator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())
    ready_at = models.DateTimeField(null=True)
    confirmed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    scanned = models.BigIntegerField(default=0)
    manifest = models.BigIntegerField(default=0)
    digest = models.BinaryField(null=True)
    wait_reason = models.TextField(blank=True)
    wait_until = models.DateTimeField(null=True)
    scan_token = models.UUIDField(null=True)
    scan_lease_until = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ("-id",)
        default_permissions = ("add", "view")
        indexes = (models.Index(fields=("state",), name="purge_by_state"),)

    def __str__(self) -> str:
        return f"purge {self.id}"


class ManifestBucket(models.Model):
    """What the scan of one bucket saw; the frozen ids themselves are those of its steps.

    count, first_id, last_id: of the ids that go. refused: matched ids that do not, since
    the bucket would be left over its budget. authors: {author id as text: how many}. plan:
    the preview's plan as `BucketPlan.as_json()`; a step plans again with what is there then.
    """

    pk = models.CompositePrimaryKey("purge_id", "channel_id", "bucket")
    purge = models.ForeignKey(Purge, on_delete=models.PROTECT, related_name="manifest_buckets")
    channel_id = models.BigIntegerField()
    bucket = models.IntegerField()
    count = models.IntegerField()
    refused = models.IntegerField(default=0)
    first_id = models.BigIntegerField(null=True)
    last_id = models.BigIntegerField(null=True)
    survivors = models.IntegerField()
    authors = models.JSONField()
    plan = models.JSONField()

    class Meta:
        default_permissions = ()
        indexes = (models.Index(fields=("channel_id", "bucket"), name="manifest_by_bucket"),)

    def __str__(self) -> str:
        return f"bucket {self.bucket} of channel {self.channel_id} in purge {self.purge_id}"


class Step(models.Model):
    """The part of a purge in one bucket that is done in one go.

    ids, survivors, gone_ids, failed_ids: packed ids. spans: [[first, last], …], both
    inclusive, stored once at *stamped*. Stamps are µs. `how` is what was done: rows, drop
    or ranges. A step is claimed by its token for as long as its lease runs.
    """

    pk = models.CompositePrimaryKey("purge_id", "ordinal")
    purge = models.ForeignKey(Purge, on_delete=models.PROTECT, related_name="steps")
    ordinal = models.IntegerField()
    channel_id = models.BigIntegerField()
    bucket = models.IntegerField()
    kind = models.CharField(max_length=10, choices=StepKind.choices())
    state = models.CharField(max_length=12, choices=StepState.choices(), default=StepState.PENDING)
    ids = models.BinaryField()
    count = models.IntegerField()
    due_at = models.DateTimeField(null=True)
    token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    read_stamp = models.BigIntegerField(null=True)
    delete_stamp = models.BigIntegerField(null=True)
    quarantined_at = models.DateTimeField(null=True)
    how = models.CharField(max_length=10, blank=True)
    spans = models.JSONField(null=True)
    survivors = models.BinaryField(null=True)
    gone_ids = models.BinaryField(null=True)
    failed_ids = models.BinaryField(null=True)
    deleted = models.IntegerField(default=0)
    already_gone = models.IntegerField(default=0)
    held = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    tombstones = models.IntegerField(null=True)
    wait_reason = models.TextField(blank=True)
    error = models.TextField(blank=True)
    counted_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        indexes = (
            models.Index(fields=("state", "due_at"), name="step_by_state"),
            models.Index(fields=("channel_id", "bucket"), name="step_by_bucket"),
        )

    def __str__(self) -> str:
        return f"step {self.ordinal} of purge {self.purge_id}"
