"""Purges and the audit in the admin: to be read, never changed there."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from moderation.domain.packing import unpack_ids
from moderation.models import AuditEntry, Purge


class ReadOnly(ModelAdmin):  # type: ignore[misc]
    """Looked at with the view permission; nobody adds, changes or deletes, not even a superuser."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never: rows come from operations."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never: rows are changed by operations, the audit by nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never: what was removed, and by whom, stays known."""
        return False


@admin.register(Purge)
class PurgeAdmin(ReadOnly):
    """Purges, newest first."""

    list_display = ("id", "state", "moderator", "manifest", "created_at", "finished_at")
    list_filter = ("state",)
    list_select_related = ("moderator",)
    search_fields = ("=id", "moderator__username", "reason")
    exclude = ("digest", "scan_token", "scan_lease_until")


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    """One row an act, newest first."""

    list_display = ("at", "act", "actor", "purge", "channel_id")
    list_filter = ("act",)
    list_select_related = ("actor", "purge")
    search_fields = ("=id", "=channel_id", "actor__username")
    readonly_fields = ("messages",)

    @admin.display(empty_value="–")
    def messages(self, entry: AuditEntry) -> str:
        """The ids of all messages that it was about, where they are kept beside its details."""
        return ", ".join(map(str, unpack_ids(entry.ids)))
