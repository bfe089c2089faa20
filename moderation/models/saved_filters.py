"""Filters of the composer that moderators saved under a name."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

MAX_NAME_CHARACTERS = 60


class SavedFilter(models.Model):
    """A filter as typed, so that "last 20 minutes" means those before it is used. description: `Description` as JSON.

    is_shared: other moderators see it too.
    """

    id = models.BigAutoField(primary_key=True)
    # The index of the constraint begins with it.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_filters", db_index=False
    )
    name = models.CharField(max_length=MAX_NAME_CHARACTERS)
    description = models.JSONField()
    is_shared = models.BooleanField(default=False)
    saved_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name", "id")
        # No permissions: who may purge may save filters, and delete their own.
        default_permissions = ()
        constraints = (models.UniqueConstraint(fields=("owner", "name"), name="one_filter_of_a_name"),)
        indexes = (models.Index(fields=("name",), name="shared_filters", condition=Q(is_shared=True)),)

    def __str__(self) -> str:
        return self.name
