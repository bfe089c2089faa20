"""Channels that members of staff pinned, to have them at hand beside every channel."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chatstore.models import Channel


class PinnedChannel(models.Model):
    """A channel that a member of staff pinned."""

    id = models.BigAutoField(primary_key=True)
    # The index of the constraint begins with it.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="pinned_channels", db_index=False
    )
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+")

    class Meta:
        ordering = ("id",)
        # No permissions: who may open a channel may pin it.
        default_permissions = ()
        constraints = (models.UniqueConstraint(fields=("user", "channel"), name="one_pin_of_a_channel"),)

    def __str__(self) -> str:
        return f"channel {self.channel_id}, pinned by {self.user_id}"
