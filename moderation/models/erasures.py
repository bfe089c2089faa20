"""Erasures: what a purge keeps is deleted for good, where two people want it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from moderation.domain.states import ErasureAnswer
from moderation.models.ids import NextId


class Erasure(models.Model):
    """Somebody asked for what a purge keeps to be erased; what another person answered, and how far it is.

    also_kept: {purge id as text: how many of the same messages that one keeps too}, as of the last look.
    was: the purge's state before it was approved. stamp (µs): stored before anything is deleted; none: nothing
    was. channels_left: ids of the channels whose part is still there. A worker has it for as long as its
    lease runs. unreadable_at: no replica has any of it since. off_disk_at: nor any of their files.
    """

    id = models.BigIntegerField(primary_key=True, db_default=NextId())
    purge = models.ForeignKey("moderation.Purge", on_delete=models.PROTECT, related_name="erasures")
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(db_default=Now())
    reason = models.TextField()
    also_kept = models.JSONField(default=dict)
    answer = models.CharField(max_length=10, choices=ErasureAnswer.choices(), default=ErasureAnswer.NONE, blank=True)
    answered_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    answered_at = models.DateTimeField(null=True)
    was = models.CharField(max_length=20, blank=True)
    stamp = models.BigIntegerField(null=True)
    channels_left = models.JSONField(default=list)
    lease_until = models.DateTimeField(null=True)
    wait_reason = models.TextField(blank=True)
    unreadable_at = models.DateTimeField(null=True)
    off_disk_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        default_permissions = ()
        permissions = (("erase_purge", "Can have erased what a purge keeps"),)
        constraints = (
            models.UniqueConstraint(
                fields=("purge",), condition=models.Q(answer="approved"), name="one_approved_erasure"
            ),
        )
        indexes = (models.Index(fields=("purge",), condition=models.Q(off_disk_at=None), name="erasure_not_off_disk"),)

    def __str__(self) -> str:
        return f"erasure {self.id} of purge {self.purge_id}"
