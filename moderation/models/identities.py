"""Identities of single sign-on, and the staff accounts that they sign in to."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class StaffIdentity(models.Model):
    """Identity at a provider (its issuer URL and the subject, which never changes there) of a staff account."""

    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    linked_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        verbose_name_plural = "staff identities"
        constraints = (
            models.UniqueConstraint(fields=("issuer", "subject"), name="one_account_per_identity"),
            models.UniqueConstraint(fields=("issuer", "account"), name="one_identity_per_account"),
        )

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"
