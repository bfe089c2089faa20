"""Reports of messages by members of the chat."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from chatstore.domain.reports import ReportCategory, Resolution
from chatstore.models.chat import Channel
from chatstore.models.functions import ClockTimestamp
from chatstore.models.ids import NextId


class ReportCaseQuerySet(models.QuerySet["ReportCase"]):
    """Cases by what can be done with them."""

    def open(self) -> Self:
        """Cases that are not resolved, the oldest first."""
        return self.filter(resolved_at=None).order_by("id")

    def resolved(self) -> Self:
        """Resolved cases, the last resolved first."""
        return self.filter(resolved_at__isnull=False).order_by("-resolved_at", "-id")

    def free(self) -> Self:
        """Cases that no moderator has claimed, or whose claim has expired."""
        return self.filter(Q(claimed_until=None) | Q(claimed_until__lt=ClockTimestamp()))


class ReportCase(models.Model):
    """All reports of one message until a moderator resolves them; later ones open another case.

    author_id: the author of the message, if it was known. category: of the first report. reported_at: time of the
    newest one. claimed_until: end of a moderator's claim, a lease. purge_id: the purge that deletes the message, if it
    was removed.
    """

    id = models.BigIntegerField(primary_key=True, db_default=NextId(0))
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="+", db_index=False)
    message_id = models.BigIntegerField()
    author_id = models.BigIntegerField(null=True)
    category = models.CharField(max_length=20, choices=[(one.value, one.value) for one in ReportCategory])
    report_count = models.PositiveIntegerField(default=0)
    opened_at = models.DateTimeField(db_default=Now())
    reported_at = models.DateTimeField(db_default=Now())
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    claimed_until = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    resolved_at = models.DateTimeField(null=True)
    resolution = models.CharField(
        max_length=10, blank=True, default="", choices=[(one.value, one.value) for one in Resolution]
    )
    reason = models.TextField(blank=True, default="")
    purge_id = models.BigIntegerField(null=True)

    objects = ReportCaseQuerySet.as_manager()

    class Meta:
        ordering = ("id",)
        default_permissions = ("view", "change")
        indexes = (
            models.Index(fields=("id",), name="case_open", condition=Q(resolved_at=None)),
            models.Index(fields=("resolved_at", "id"), name="case_resolved", condition=Q(resolved_at__isnull=False)),
            models.Index(fields=("channel", "message_id", "id"), name="case_by_message"),
            models.Index(fields=("author_id", "opened_at"), name="case_by_author"),
            models.Index(fields=("author_id", "resolution"), name="case_by_outcome"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("channel", "message_id"), condition=Q(resolved_at=None), name="one_open_case"
            ),
        )

    def __str__(self) -> str:
        return f"reports of message {self.message_id}"


class Report(models.Model):
    """A member's report of a message."""

    id = models.BigIntegerField(primary_key=True, db_default=NextId(0))
    case = models.ForeignKey(ReportCase, on_delete=models.PROTECT, related_name="reports", db_index=False)
    reporter_id = models.BigIntegerField()
    category = models.CharField(max_length=20, choices=[(one.value, one.value) for one in ReportCategory])
    text = models.TextField(blank=True)
    reported_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-id",)
        default_permissions = ()
        indexes = (models.Index(fields=("case", "id"), name="report_by_case"),)
        constraints = (models.UniqueConstraint(fields=("case", "reporter_id"), name="one_report_of_each_member"),)

    def __str__(self) -> str:
        return f"report {self.pk} by {self.reporter_id}"
