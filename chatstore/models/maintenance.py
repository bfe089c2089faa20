"""Maintenance: schedules of jobs, their runs, findings, buckets with deletes, and figures by day."""

from __future__ import annotations

import datetime as dt
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce, Greatest, Now

from chatstore.domain.health import ChannelState
from chatstore.domain.runs import ENDED, RunState, Severity
from chatstore.models.chat import Channel, Guild
from chatstore.models.functions import ClockTimestamp
from chatstore.models.texts import TemplateTextField


class JobSchedule(models.Model):
    """Schedule of a job; see `chatstore.domain.schedules`. A job without a row uses its default schedule."""

    job = models.SlugField(primary_key=True, max_length=40)
    cron = models.CharField(max_length=100)
    zone = models.CharField(max_length=60)
    opens = models.TimeField(null=True, blank=True)
    closes = models.TimeField(null=True, blank=True)
    is_enabled = models.BooleanField(default=True)
    changed_at = models.DateTimeField(db_default=Now())
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        default_permissions = ("view", "change")

    def __str__(self) -> str:
        return f"{self.job}: {self.cron} ({self.zone})"


class JobRunQuerySet(models.QuerySet["JobRun"]):
    """Runs by what can be done with them."""

    def open(self) -> Self:
        """Runs that have not ended."""
        return self.exclude(state__in=ENDED)

    def ended(self) -> Self:
        """Runs that have ended, in whatever state."""
        return self.filter(state__in=ENDED)

    def free(self) -> Self:
        """Runs that no worker has under lease."""
        return self.filter(Q(lease_until=None) | Q(lease_until__lt=ClockTimestamp()))

    def due(self) -> Self:
        """Runs whose time has come."""
        return self.filter(due_at__lte=ClockTimestamp())


class JobRun(models.Model):
    """One run of a job.

    slot: its scheduled wall-clock time ("2026-03-29T02:30"); no second run can be created for the same slot.
    None: requested by a user. subject: what a requested run is about ("<channel>:<bucket>"), or empty. result: counts
    by name, once it has ended. progress: {"done", "total", "what"} while it runs. token: the claim of a run, valid as
    long as its lease. retry_of: the failed run that this one retries. stop_requested_by: the user who requested its
    end.
    """

    job = models.SlugField(max_length=40)
    slot = models.CharField(max_length=16, null=True)  # noqa: DJ001 - None differs from an empty slot
    subject = models.CharField(max_length=60, blank=True)
    state = models.CharField(max_length=10, choices=RunState.choices(), default=RunState.QUEUED)
    due_at = models.DateTimeField()
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    retry_of = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="again")
    stop_requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.IntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    progress = models.JSONField(default=dict)
    result = models.JSONField(default=dict)
    error = TemplateTextField(blank=True)

    objects = JobRunQuerySet.as_manager()

    class Meta:
        ordering = ("-due_at", "-id")
        default_permissions = ("add", "view")
        constraints = (models.UniqueConstraint(fields=("job", "slot"), name="one_run_a_slot"),)
        indexes = (
            models.Index(fields=("job", "-due_at"), name="run_by_job"),
            models.Index(fields=("job", "subject", "ended_at"), name="run_by_subject"),
            models.Index(fields=("due_at", "id"), condition=~Q(state__in=ENDED), name="run_open"),
            models.Index(fields=("ended_at",), condition=Q(state=RunState.FAILED), name="run_failed"),
        )

    def __str__(self) -> str:
        return f"run {self.pk} of {self.job}"


class FindingQuerySet(models.QuerySet["Finding"]):
    """Findings by whether their problem was resolved."""

    def open(self) -> Self:
        """Findings whose problem was not resolved yet."""
        return self.filter(closed_at=None)


class Finding(models.Model):
    """A problem that needs attention: opened once, closed automatically when it is resolved.

    kind and subject identify it: ("heavy bucket", "<channel>:<bucket>"). channel_id: the channel whose state follows
    from it, if any. summary: the text shown to users. notified_at, mailed_at: the last notification by webhook and by
    mail.
    """

    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=100, blank=True)
    channel_id = models.BigIntegerField(null=True)
    severity = models.IntegerField(choices=Severity.choices())
    summary = TemplateTextField()
    details = models.JSONField(default=dict)
    opened_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True)
    notified_at = models.DateTimeField(null=True)
    mailed_at = models.DateTimeField(null=True)

    objects = FindingQuerySet.as_manager()

    class Meta:
        ordering = ("-severity", "-opened_at")
        default_permissions = ("view",)
        constraints = (
            models.UniqueConstraint(
                fields=("kind", "subject"), condition=models.Q(closed_at=None), name="one_open_finding"
            ),
        )
        indexes = (
            models.Index(
                fields=("channel_id",), condition=Q(channel_id__isnull=False, closed_at=None), name="finding_by_channel"
            ),
        )

    def __str__(self) -> str:
        return self.summary


class BucketDeletes(models.Model):
    """Number of deletes (tombstones written: rows, ranges, a partition) in a bucket within an hour of Postgres's clock.

    last_at: the last of them. is_reconciled: the ledger reconciliation has read the bucket since. A row is deleted once
    it has, and a repair that began after `last_at` has covered the bucket.
    """

    pk = models.CompositePrimaryKey("channel_id", "bucket", "hour")
    channel_id = models.BigIntegerField()
    bucket = models.IntegerField()
    hour = models.DateTimeField()
    deletes = models.BigIntegerField()
    last_at = models.DateTimeField()
    is_reconciled = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()
        indexes = (
            models.Index(fields=("last_at",), condition=models.Q(is_reconciled=False), name="deletes_to_reconcile"),
            models.Index(fields=("last_at",), name="deletes_by_time"),
            # Repair clocks read the first hour.
            models.Index(fields=("hour",), name="deletes_by_hour"),
        )

    def __str__(self) -> str:
        return f"{self.deletes} deletes in bucket {self.bucket} of channel {self.channel_id}"


class ChannelDay(models.Model):
    """A channel's figures of one day (UTC), for its history; None: not measured that day.

    tombstones, bytes: the maximum of any bucket. read_ms: reading the newest page. live_rows: total.
    """

    pk = models.CompositePrimaryKey("channel_id", "day")
    channel_id = models.BigIntegerField()
    day = models.DateField()
    tombstones = models.BigIntegerField(null=True)
    bytes = models.BigIntegerField(null=True)
    read_ms = models.FloatField(null=True)
    live_rows = models.BigIntegerField(null=True)

    class Meta:
        default_permissions = ()
        # The maximum of a day over all channels is one probe of an index.
        indexes = (
            models.Index(fields=("day", "tombstones"), name="channel_days_by_tombstones"),
            models.Index(fields=("day", "bytes"), name="channel_days_by_bytes"),
            models.Index(fields=("day", "read_ms"), name="channel_days_by_read_ms"),
        )

    def __str__(self) -> str:
        return f"channel {self.channel_id} on {self.day}"


UNKNOWN_FIRST = -1
LONG_AGO = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
"""Values in place of unknown figures and times in the order of channels: below every known one."""


class ChannelSummary(models.Model):
    """Last known figures of a channel, for the table of all channels; None: never measured.

    Every channel has a row: triggers add it, and keep `guild` equal to the channel's. Figures are copied from Cassandra
    some seconds after they were measured there; see `chatstore.operations.health.summaries`. figure_state: the state by
    the figures. finding_state: the state by the worst open finding; None: there is none. *_bucket: the bucket with
    the maximum. *_at: when it was measured. empty_share: empty buckets among `buckets`, those ever written.
    uncovered_deletes: those that no repair covers; uncovered_at: when their number last changed. last_purge_id: the
    last purge that ended. refreshed_at: the last copy. due_at: since when the row is to be refreshed; None: it is up to
    date.
    """

    channel = models.OneToOneField(Channel, primary_key=True, on_delete=models.CASCADE, related_name="summary")
    guild = models.ForeignKey(Guild, null=True, on_delete=models.PROTECT, related_name="+")
    figure_state = models.SmallIntegerField(choices=ChannelState.choices(), default=ChannelState.UNKNOWN.value)
    finding_state = models.SmallIntegerField(choices=ChannelState.choices(), null=True)
    state = models.GeneratedField(
        expression=Greatest("figure_state", "finding_state"),
        output_field=models.SmallIntegerField(choices=ChannelState.choices()),
        db_persist=True,
    )
    tombstones = models.BigIntegerField(null=True)
    tombstones_bucket = models.IntegerField(null=True)
    tombstones_at = models.DateTimeField(null=True)
    bytes = models.BigIntegerField(null=True)
    bytes_bucket = models.IntegerField(null=True)
    bytes_at = models.DateTimeField(null=True)
    page_us = models.BigIntegerField(null=True)
    page_rows = models.BigIntegerField(null=True)
    page_tombstones = models.BigIntegerField(null=True)
    page_buckets = models.IntegerField(null=True)
    page_at = models.DateTimeField(null=True)
    buckets = models.IntegerField(null=True)
    empty_buckets = models.IntegerField(null=True)
    empty_share = models.FloatField(null=True)
    uncovered_deletes = models.BigIntegerField(null=True)
    uncovered_at = models.DateTimeField(null=True)
    last_purge_id = models.BigIntegerField(null=True)
    last_purged_at = models.DateTimeField(null=True)
    refreshed_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        indexes = (
            # Of the expressions that the table is sorted by; each serves both directions.
            models.Index(fields=("state", "channel"), name="summary_by_state"),
            models.Index(Coalesce("tombstones", UNKNOWN_FIRST), F("channel"), name="summary_by_tombstones"),
            models.Index(Coalesce("bytes", UNKNOWN_FIRST), F("channel"), name="summary_by_bytes"),
            models.Index(Coalesce("page_us", UNKNOWN_FIRST), F("channel"), name="summary_by_page"),
            models.Index(Coalesce("empty_share", float(UNKNOWN_FIRST)), F("channel"), name="summary_by_empty_share"),
            models.Index(Coalesce("uncovered_deletes", UNKNOWN_FIRST), F("channel"), name="summary_by_uncovered"),
            models.Index(Coalesce("last_purged_at", Value(LONG_AGO)), F("channel"), name="summary_by_last_purge"),
            models.Index(fields=("due_at",), condition=Q(due_at__isnull=False), name="summary_due"),
        )

    def __str__(self) -> str:
        return f"summary of channel {self.channel_id}"
