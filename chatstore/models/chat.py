"""Guilds, channels and chat users in Postgres. Ids are the chat's own snowflakes."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from chatstore.models.names import LONGEST_NAME, NamedQuerySet, name_index


class Guild(models.Model):
    """A guild ("server"); direct messages have none."""

    id = models.BigIntegerField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME)

    class Meta:
        ordering = ("name", "id")

    def __str__(self) -> str:
        return self.name


class ChannelQuerySet(NamedQuerySet["Channel"]):
    """Channels, by name."""


class Channel(models.Model):
    """A channel, thread or direct conversation."""

    class Kind(models.TextChoices):
        """Kind of a channel, after Discord's channel types."""

        TEXT = "text", "text channel"
        VOICE = "voice", "voice channel"
        NEWS = "news", "announcements"
        THREAD = "thread", "thread"
        FORUM = "forum", "forum"
        DIRECT = "direct", "direct message"

    id = models.BigIntegerField(primary_key=True)
    guild = models.ForeignKey(Guild, null=True, blank=True, on_delete=models.PROTECT, related_name="channels")
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.TEXT)
    name = models.CharField(max_length=LONGEST_NAME)
    category = models.CharField(max_length=200, blank=True)
    topic = models.TextField(blank=True)

    objects = ChannelQuerySet.as_manager()

    class Meta:
        ordering = ("name", "id")
        indexes = (
            models.Index(fields=("name", "id"), name="channel_by_name"),
            name_index("channel_by_trigram", "name"),
        )

    def __str__(self) -> str:
        return self.name if self.kind == self.Kind.DIRECT else f"#{self.name}"

    @property
    def full_name(self) -> str:
        """The name with the guild's: "#general (Tidewalkers)". Query with `select_related("guild")`."""
        return str(self) if self.guild is None else f"{self} ({self.guild})"


class ChatUserQuerySet(NamedQuerySet["ChatUser"]):
    """Chat users, by name and display name."""

    NAMES: ClassVar[tuple[str, ...]] = ("name", "display_name")


class ChatUser(models.Model):
    """A user who writes messages; not a member of staff."""

    id = models.BigIntegerField(primary_key=True)
    name = models.CharField(max_length=100)
    display_name = models.CharField(max_length=100, blank=True)
    is_bot = models.BooleanField(default=False)

    objects = ChatUserQuerySet.as_manager()

    class Meta:
        ordering = ("name", "id")
        indexes = (name_index("chat_user_by_trigram", "name", "display_name"),)
        verbose_name = "chat user"

    def __str__(self) -> str:
        return self.display_name or self.name
