"""Invitations of staff."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Invitation(models.Model):
    """A link by which a new account sets its own password, once.

    token_hash: of the token in the link, which is not stored. ended_at: when it was used, replaced or withdrawn.
    """

    account = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    token_hash = models.BinaryField(unique=True)
    expires_at = models.DateTimeField()
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    invited_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(fields=("account",), condition=Q(ended_at=None), name="invitation_open_once"),
        )

    def __str__(self) -> str:
        return f"invitation {self.pk} of account {self.account_id}"
