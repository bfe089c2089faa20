"""Erasures: permanent deletion of the copies of a purge, which takes two people."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from chatstore.models.ids import NextId
from chatstore.models.texts import TemplateTextField
from moderation.domain.states import ErasureDecision


class Erasure(models.Model):
    """Request to erase the copies of a purge, the decision of a second person, and its progress.

    also_kept: {purge id as text: number of the same messages that it also has copies of}, as of the last check.
    previous_state: state of the purge before the approval. stamp (µs): stored before anything is deleted; None:
    nothing was deleted. channels_left: ids of the channels whose copies still exist. lease_until: end of the lease of
    the worker that runs it. unreadable_at: from when no replica returns any copy. off_disk_at: from when no data file
    contains any.
    """

    id = models.BigIntegerField(primary_key=True, db_default=NextId())
    purge = models.ForeignKey("moderation.Purge", on_delete=models.PROTECT, related_name="erasures")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField(db_default=Now())
    reason = models.TextField()
    also_kept = models.JSONField(default=dict)
    decision = models.CharField(
        max_length=10, choices=ErasureDecision.choices(), default=ErasureDecision.NONE, blank=True
    )
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField(null=True)
    previous_state = models.CharField(max_length=20, blank=True)
    stamp = models.BigIntegerField(null=True)
    channels_left = models.JSONField(default=list)
    lease_until = models.DateTimeField(null=True)
    wait_reason = TemplateTextField(blank=True)
    unreadable_at = models.DateTimeField(null=True)
    off_disk_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        default_permissions = ()
        permissions = (("erase_purge", "Can permanently delete the copies of a purge"),)
        constraints = (
            models.UniqueConstraint(
                fields=("purge",), condition=models.Q(decision="approved"), name="one_approved_erasure"
            ),
        )
        indexes = (models.Index(fields=("purge",), condition=models.Q(off_disk_at=None), name="erasure_not_off_disk"),)

    def __str__(self) -> str:
        return f"erasure {self.id} of purge {self.purge_id}"
