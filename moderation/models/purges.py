"""Purges, their frozen manifests, and their undos. Postgres is the queue: these rows and their steps are all of it.

`moderation.domain.states` defines the transitions; each one is a conditional update.
"""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from chatstore.domain.buckets import BucketKey
from chatstore.models.ids import NextId
from chatstore.models.texts import TemplateTextField
from moderation.domain.states import ACTIVE_PURGES, EXPIRES_FROM, PurgeState


class PurgeQuerySet(models.QuerySet["Purge"]):
    """Purges by what can be done with them."""

    def update(self, **values: Any) -> int:
        """Update the purges; every update makes a new version, so that pages know that something has changed."""
        return super().update(**{"version": F("version") + 1, **values})

    def schedule(self, **values: Any) -> int:
        """Update when the purges are processed; pages show nothing of it, so no new version is made."""
        return super().update(**values)

    def active(self) -> Self:
        """Purges that were confirmed or are being undone, and have not ended."""
        return self.filter(state__in=ACTIVE_PURGES)


class Purge(models.Model):
    """One purge: a selection, the manifest it matched, its moderator and its reason.

    held_at_scan: number of messages that matched the selection but were held when they were scanned; not part of the
    manifest.
    scan_token, scan_lease_until: claim of the part of the scan's scope that is still to be listed.
    scanned_channel_id, scanned_bucket: the last bucket that was frozen by the scan or listed in one of its parts.
    version: changes with every update of the purge and whenever steps were counted.
    guild_id: the guild of all its channels; 0 if they are in several, or in none. Turns are given by it.
    guild_ids, channel_ids: whose right decides who may see it, see `moderation.operations.access.visibility`. The
    guilds, 0 for none, that the selection names and in which it matched, and the channels if they are few and it does
    not name a guild. None: not known before it was scanned.
    manifest_guild_ids: the guilds, 0 for none, of the messages in its manifest. None: those of `guild_ids`.
    wakeup_expires_at: set when workers were notified and none has started yet; until then no further wake-up task is
    enqueued, and the purge waits for its turn.
    turn_at: the beginning of its last turn.
    quarantined_at: when the first of its steps was quarantined; the undo period begins then.
    reopened_to: the ordinal up to which the cancelled or failed steps of a purge that continues were reopened so far;
    None: none is left.
    sent_form: the form that drafted it, as `moderation.forms.identify_form` returns it; None if no page did.
    is_rewrite: not a purge of its own but the follow-up of one, with an empty manifest. It rewrites a bucket that was
    left over its budget of tombstones.
    """

    id = models.BigIntegerField(_("ID"), primary_key=True, db_default=NextId())
    is_rewrite = models.BooleanField(db_default=False, default=False)
    state = models.CharField(max_length=20, choices=PurgeState.choices(), default=PurgeState.DRAFT)
    selection = models.JSONField()
    moderator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = TemplateTextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())
    ready_at = models.DateTimeField(null=True)
    confirmed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    quarantined_at = models.DateTimeField(null=True)
    scanned = models.BigIntegerField(default=0)
    manifest = models.BigIntegerField(default=0)
    held_at_scan = models.BigIntegerField(db_default=0, default=0)
    manifest_hash = models.BinaryField(null=True)
    wait_reason = TemplateTextField(blank=True)
    wait_until = models.DateTimeField(null=True)
    guild_id = models.BigIntegerField(db_default=0, default=0)
    guild_ids = ArrayField(models.BigIntegerField(), null=True)
    channel_ids = ArrayField(models.BigIntegerField(), null=True)
    manifest_guild_ids = ArrayField(models.BigIntegerField(), null=True)
    wakeup_expires_at = models.DateTimeField(null=True)
    turn_at = models.DateTimeField(null=True)
    scan_token = models.UUIDField(null=True)
    scan_lease_until = models.DateTimeField(null=True)
    scanned_channel_id = models.BigIntegerField(null=True)
    scanned_bucket = models.IntegerField(null=True)
    reopened_to = models.IntegerField(null=True)
    error = TemplateTextField(blank=True)
    version = models.BigIntegerField(db_default=0, default=0)
    sent_form = models.UUIDField(null=True)

    objects = PurgeQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        default_permissions = ("add", "view")
        indexes = (
            models.Index(fields=("state", "is_rewrite"), name="purge_by_state"),
            models.Index(
                fields=("wakeup_expires_at",), condition=Q(wakeup_expires_at__isnull=False), name="purge_that_waits"
            ),
            models.Index(fields=("finished_at",), condition=Q(finished_at__isnull=False), name="purge_by_end"),
            models.Index(fields=("guild_id", "turn_at"), name="purge_turn_by_guild"),
            # Of purges that are being scanned, matched nothing, or whose manifest was pruned.
            GinIndex(KeyTransform("channels", "selection"), name="purge_by_selected_channel"),
            models.Index(fields=("moderator", "turn_at"), name="purge_turn_by_moderator"),
            models.Index(
                fields=("moderator", "confirmed_at"),
                condition=Q(confirmed_at__isnull=False),
                name="purge_confirmed_by",
            ),
            GinIndex(fields=("guild_ids",), name="purge_by_guilds"),
            models.Index(fields=("sent_form",), condition=Q(sent_form__isnull=False), name="purge_by_sent_form"),
            models.Index(
                fields=("quarantined_at",),
                condition=Q(state__in=EXPIRES_FROM, is_rewrite=False),
                name="purge_that_expires",
            ),
        )

    def __str__(self) -> str:
        return f"purge {self.id}"

    @property
    def limited_in(self) -> list[int] | None:
        """Guilds whose limits count: those in which it deletes messages. None: it may be any."""
        return self.guild_ids if self.manifest_guild_ids is None else self.manifest_guild_ids

    @property
    def scanned_to(self) -> BucketKey | None:
        """The last bucket that was frozen or listed by the scan, in the order of channels and buckets."""
        if self.scanned_channel_id is None or self.scanned_bucket is None:
            return None
        return self.scanned_channel_id, self.scanned_bucket


class ManifestBucket(models.Model):
    """Scan result of one bucket. The frozen ids are stored on its steps.

    count, first_id, last_id: of the ids to delete. survivors: number of messages that are kept; None: not counted,
    because only the selected messages were read. manifest_hash: `hash_bucket` of them (previews of older versions
    have none). authors: {author id as text: number of messages}. plan: the preview's plan as `BucketPlan.as_json()`;
    a step plans again with the current contents.
    """

    pk = models.CompositePrimaryKey("purge_id", "channel_id", "bucket")
    # The primary key's index begins with it.
    purge = models.ForeignKey(Purge, on_delete=models.PROTECT, related_name="manifest_buckets", db_index=False)
    channel_id = models.BigIntegerField()
    bucket = models.IntegerField()
    count = models.IntegerField()
    first_id = models.BigIntegerField(null=True)
    last_id = models.BigIntegerField(null=True)
    manifest_hash = models.BinaryField(null=True)
    survivors = models.IntegerField(null=True)
    authors = models.JSONField()
    plan = models.JSONField()

    class Meta:
        default_permissions = ()
        indexes = (
            models.Index(fields=("channel_id", "bucket"), name="manifest_by_bucket"),
            GinIndex(fields=("authors",), name="manifest_by_author"),
        )

    def __str__(self) -> str:
        return f"bucket {self.bucket} of channel {self.channel_id} in purge {self.purge_id}"


class ManifestSummary(models.Model):
    """Sums of a frozen manifest, so that pages need not read its buckets. data: as
    `moderation.operations.preview.manifest_summary` computes it."""

    purge = models.OneToOneField(Purge, on_delete=models.PROTECT, primary_key=True, related_name="summary")
    data = models.JSONField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"summary of purge {self.purge_id}"


class Undo(models.Model):
    """Request to undo a purge or a part of it.

    part: {"authors": […], "channels": […], "messages": […]}, ids as strings; if all are empty, the whole purge.
    reason: "" if it was requested in an older version. expected: number of messages that it requests, as counted when
    it was created; an upper bound for authors; None: not counted. steps_created_to: the ordinal up to which the purge's
    steps have a step of the undo so far; 0: none has one, and the purge may have to be cancelled first; None: all that
    it covers have one. The others are the sums of its counted steps.
    """

    id = models.BigIntegerField(primary_key=True, db_default=NextId())
    purge = models.ForeignKey(Purge, on_delete=models.PROTECT, related_name="undos")
    moderator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    reason = models.TextField(default="", db_default="")
    part = models.JSONField()
    expected = models.BigIntegerField(null=True)
    steps_created_to = models.IntegerField(null=True)
    requested = models.BigIntegerField(db_default=0, default=0)
    restored = models.BigIntegerField(db_default=0, default=0)
    withdrawn = models.BigIntegerField(db_default=0, default=0)
    still_purged = models.BigIntegerField(db_default=0, default=0)
    already_live = models.BigIntegerField(db_default=0, default=0)
    no_copy = models.BigIntegerField(db_default=0, default=0)
    failed = models.BigIntegerField(db_default=0, default=0)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"undo {self.id} of purge {self.purge_id}"
