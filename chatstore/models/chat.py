"""Guilds, channels and chat users in Postgres. Ids are the chat's own snowflakes."""

from __future__ import annotations

import re
from typing import ClassVar, Self

from django.db import models
from django.db.models import Exists, F, OuterRef, Value
from django.db.models.functions import Coalesce, NullIf
from django.utils.translation import gettext_lazy as _

from chatstore.domain.members import MAX_ICON_CHARACTERS, MAX_ROLE_CHARACTERS, MemberRole, roles_from_json
from chatstore.models.names import LONGEST_NAME, NamedQuerySet, name_index


class Guild(models.Model):
    """A guild ("server"); direct messages have none. icon_url: https, or "" for none."""

    id = models.BigIntegerField(_("ID"), primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME)
    icon_url = models.CharField(max_length=MAX_ICON_CHARACTERS, blank=True, default="", db_default="")

    class Meta:
        ordering = ("name", "id")
        verbose_name = _("server")

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

    id = models.BigIntegerField(_("ID"), primary_key=True)
    guild = models.ForeignKey(
        Guild, null=True, blank=True, on_delete=models.PROTECT, related_name="channels", verbose_name=_("server")
    )
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.TEXT)
    name = models.CharField(max_length=LONGEST_NAME)
    category = models.CharField(max_length=200, blank=True)
    topic = models.TextField(blank=True)

    objects = ChannelQuerySet.as_manager()

    class Meta:
        ordering = ("name", "id")
        indexes = (
            models.Index(fields=("name", "id"), name="channel_by_name"),
            models.Index(fields=("guild", "category", "name", "id"), name="channel_by_guild"),
            name_index("channel_by_trigram", "name"),
        )

    def __str__(self) -> str:
        return self.name if self.kind == self.Kind.DIRECT else f"#{self.name}"

    @property
    def full_name(self) -> str:
        """The name with the guild's: "#general (Tidewalkers)". Query with `select_related("guild")`."""
        return str(self) if self.guild is None else f"{self} ({self.guild})"


_LOOKS_DISTINCT = re.compile(r"\(@|\((…|\.\.\.)?\d+\)$")


def _shown_name(reference: type[F | OuterRef]) -> Coalesce:
    """Return the name by which a chat user is shown, as SQL; an index begins with it."""
    return Coalesce(NullIf(reference("display_name"), Value("")), reference("name"))


class ChatUserQuerySet(NamedQuerySet["ChatUser"]):
    """Chat users, by name and display name."""

    NAMES: ClassVar[tuple[str, ...]] = ("name", "display_name")

    def with_namesakes(self) -> Self:
        """Add whether others are shown by the same name, and whether some of those have the same handle too."""
        others = ChatUser.objects.alias(shown=_shown_name(F)).filter(shown=_shown_name(OuterRef))
        others = others.exclude(pk=OuterRef("pk")).order_by()
        return self.annotate(has_namesake=Exists(others), has_twin=Exists(others.filter(name=OuterRef("name"))))


class ChatUser(models.Model):
    """A user who writes messages; not a member of staff."""

    id = models.BigIntegerField(_("ID"), primary_key=True)
    name = models.CharField(max_length=100)
    display_name = models.CharField(max_length=100, blank=True)
    is_bot = models.BooleanField(_("bot"), default=False)

    has_namesake = False
    has_twin = False

    objects = ChatUserQuerySet.as_manager()

    class Meta:
        ordering = ("name", "id")
        indexes = (
            name_index("chat_user_by_trigram", "name", "display_name"),
            models.Index(_shown_name(F), "name", name="chat_user_by_shown_name"),
        )
        verbose_name = _("chat user")

    def __str__(self) -> str:
        return self.display_name or self.name

    @property
    def is_ambiguous(self) -> bool:
        """Whether the name alone does not identify the user: others have it, or it only looks as if it did.

        So does a name that pretends to have a handle, or that has spaces which no page shows. Query with
        `with_namesakes()`.
        """
        name = str(self)
        return self.has_namesake or bool(_LOOKS_DISTINCT.search(name)) or name != " ".join(name.split())

    @property
    def distinct_name(self) -> str:
        """The name, if it is ambiguous with the handle, or with the end of the ID: "Victor (@victor.deals)"."""
        if self.has_twin:
            return f"{self} {self.id_end}"
        return f"{self} (@{self.name})" if self.is_ambiguous else str(self)

    @property
    def distinct_handle(self) -> str:
        """The handle, with the end of the ID where `distinct_name` has it: "@victor.deals (...8452)"."""
        return f"@{self.name} {self.id_end}" if self.has_twin else f"@{self.name}"

    def handle_beside(self, shown_name: str) -> str:
        """Return what `distinct_handle` says beyond the name that is shown; "" if nothing."""
        if self.name != shown_name:
            return self.distinct_handle
        return self.id_end if self.has_twin else ""

    @property
    def id_end(self) -> str:
        """The end of the ID: "(...8452)". Not "…": a line may break between it and a digit."""
        return f"(...{self.pk % 10_000:04})"


class GuildMember(models.Model):
    """What is known of a chat user in a guild. The user may be missing from `ChatUser`, as authors may.

    Kept after the user has left: the raiders that a purge is about are often banned before it. joined_at: when they
    last joined, None if unknown. roles: `chatstore.domain.members.roles_as_json`, None if unknown.
    """

    pk = models.CompositePrimaryKey("guild_id", "user_id")
    guild = models.ForeignKey(Guild, on_delete=models.PROTECT, related_name="+", db_index=False)
    user_id = models.BigIntegerField()
    joined_at = models.DateTimeField(null=True)
    roles = models.JSONField(null=True)

    class Meta:
        default_permissions = ()
        indexes = (
            models.Index(fields=("user_id",), name="member_by_user"),
            models.Index(fields=("guild", "joined_at"), name="member_by_join"),
        )

    def __str__(self) -> str:
        return f"user {self.user_id} in guild {self.guild_id}"

    @property
    def member_roles(self) -> tuple[MemberRole, ...]:
        """The roles, the highest first; none if they are unknown."""
        return roles_from_json(self.roles)


class GuildRole(models.Model):
    """Name of a role in the chat, for messages that mention it."""

    pk = models.CompositePrimaryKey("guild_id", "role_id")
    guild = models.ForeignKey(Guild, on_delete=models.PROTECT, related_name="+", db_index=False)
    role_id = models.BigIntegerField()
    name = models.CharField(max_length=MAX_ROLE_CHARACTERS)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"role {self.role_id} in guild {self.guild_id}"
