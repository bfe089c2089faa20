"""Purges and the audit log in the admin, read-only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import F, Model, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, NullIf
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatstore.admin_lists import KeysetAdmin, search_columns
from chatstore.admin_log import RecordedAdmin, register_recorder
from chatstore.domain.controls import show_hidden
from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.users import User
from moderation.domain.packing import unpack_ids
from moderation.domain.state_labels import STATE_LABELS, shown_state
from moderation.models import AuditEntry, Purge, RaidSettings
from moderation.operations.access.admin_changes import record_admin_change
from moderation.operations.selection.shown_states import filter_by_shown_state, with_shown_states
from moderation.presentation.audit import AUDIT_ACTIONS, all_facts, label_of
from moderation.presentation.people import name_unknown
from moderation.presentation.texts import translate

MAX_ACCOUNTS = 10
"""Maximum number of accounts whose user name contains what is searched for."""


_LINK = '<a href="{}" class="text-primary-600">{}</a>'

register_recorder(record_admin_change)


class ReadOnly(KeysetAdmin):
    """Visible with the view permission. Rows cannot be added, changed or deleted, not even by a superuser."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: operations add the rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False: operations change the rows, and nothing changes the audit log."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False: the record of deletions is permanent."""
        return False


class ActionFilter(admin.SimpleListFilter):
    """Entries of one action. The choices are all known actions: Postgres would have to read all entries for them."""

    title = gettext_lazy("action")
    parameter_name = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the actions with their labels."""
        return list(AUDIT_ACTIONS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """Return the entries of the chosen action."""
        return queryset.filter(action=self.value()) if self.value() else queryset


class StateFilter(admin.SimpleListFilter):
    """Purges in a state, in the words of the list."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the states with their labels."""
        return [(shown, capfirst(translate(label))) for shown, label in STATE_LABELS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Purge]) -> QuerySet[Purge]:
        """Return the purges in the chosen state."""
        shown = self.value()
        return filter_by_shown_state(queryset, shown) if shown else queryset


def _search(rows: QuerySet[Any], text: str, *, ids: Sequence[str], staff: str) -> QuerySet[Any]:
    """Search for an ID in some columns, or for the account of a member of staff by user name."""
    if not text:
        return rows
    try:
        number = parse_snowflake(text)
    except BadInput:
        accounts = User.objects.filter(username__icontains=text).order_by("username")[:MAX_ACCOUNTS]
        return search_columns(rows, [{staff: account} for account in accounts])
    return search_columns(rows, [{column: number} for column in ids])


@admin.register(Purge)
class PurgeAdmin(ReadOnly):
    """Purges, newest first."""

    list_display = ("id", "state_label", "moderator", "messages", "created_at", "finished_at")
    list_filter = (StateFilter,)
    list_select_related = ("moderator",)
    search_fields = ("=id", "moderator__username")
    # The page of a purge shows the rest in words.
    fields = (
        *("page", "state_label", "moderator", "reason", "created_at", "confirmed_at", "started_at", "finished_at"),
        *("scanned_messages", "messages", "held_messages", "wait_reason", "wait_until", "error", "selection"),
    )
    readonly_fields = ("page", "state_label", "scanned_messages", "messages", "held_messages")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Purge]:
        """Return the purges with what their state alone does not say."""
        return with_shown_states(super().get_queryset(request))

    @admin.display(description=gettext_lazy("State"), ordering="state")
    def state_label(self, purge: Purge) -> str:
        """Return the label of the state, as on other pages."""
        shown = shown_state(
            purge.state,
            is_discarded=getattr(purge, "is_discarded", False),
            awaits_approval=getattr(purge, "awaits_approval", False),
        )
        return translate(STATE_LABELS[shown])

    @admin.display(description=gettext_lazy("Purge"))
    def page(self, purge: Purge) -> str:
        """Link to the page of the purge; the rewrite of a bucket has none."""
        if purge.is_rewrite:
            return _("Rewrite of a bucket")
        return format_html(_LINK, reverse("purge", args=[purge.pk]), _("Open purge"))

    @admin.display(description=gettext_lazy("Messages scanned"))
    def scanned_messages(self, purge: Purge) -> str:
        """Return the number of messages that the scan read."""
        return number_format(purge.scanned, force_grouping=True)

    @admin.display(description=gettext_lazy("Messages in the manifest"), ordering="manifest")
    def messages(self, purge: Purge) -> str:
        """Return the number of messages to delete."""
        return number_format(purge.manifest, force_grouping=True)

    @admin.display(description=gettext_lazy("Held messages at the scan"))
    def held_messages(self, purge: Purge) -> str:
        """Return the number of matches that a hold covered."""
        return number_format(purge.held_at_scan, force_grouping=True)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Purge], search_term: str
    ) -> tuple[QuerySet[Purge], bool]:
        """Search for an ID or a moderator."""
        return _search(queryset, search_term, ids=("pk",), staff="moderator"), False


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    """The audit log: one row per action, newest first."""

    list_display = ("at", "action_label", "actor", "purge_link", "place", "chat_user")
    list_filter = (ActionFilter,)
    list_select_related = ("actor",)
    search_fields = ("=id", "=channel_id", "=purge", "actor__username")
    fields = ("at", "action_label", "actor", "purge_link", "place", "chat_user", "facts", "messages")
    readonly_fields = ("action_label", "purge_link", "place", "chat_user", "facts", "messages")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Search for the ID of an entry, a channel or a purge, or for an actor."""
        return _search(queryset, search_term, ids=("pk", "channel_id", "purge"), staff="actor"), False

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        """Return the entries with names of their channels, guilds and users, and whether their purge is a rewrite."""
        entries: QuerySet[AuditEntry] = super().get_queryset(request)
        channels = Channel.objects.filter(pk=OuterRef("channel_id")).values("name")[:1]
        guilds = Guild.objects.filter(pk=OuterRef("guild_id")).values("name")[:1]
        users = ChatUser.objects.filter(pk=OuterRef("chat_user_id"))
        return entries.annotate(
            channel_name=Subquery(channels),
            guild_name=Subquery(guilds),
            chat_user_name=Subquery(users.values(shown=Coalesce(NullIf("display_name", Value("")), "name"))[:1]),
            is_of_rewrite=F("purge__is_rewrite"),
        )

    @admin.display(description=gettext_lazy("Action"), ordering="action")
    def action_label(self, entry: AuditEntry) -> str:
        """Return the label of the action."""
        return label_of(entry.action)

    @admin.display(description=gettext_lazy("Purge"), ordering="purge", empty_value="–")
    def purge_link(self, entry: AuditEntry) -> str | None:
        """Link to the page of the purge; the rewrite of a bucket has none."""
        if entry.purge_id is None:
            return None
        if getattr(entry, "is_of_rewrite", False):
            return _("Rewrite of a bucket")
        label = _("Purge %(id)s") % {"id": entry.purge_id}
        return format_html(_LINK, reverse("purge", args=[entry.purge_id]), label)

    @admin.display(description=gettext_lazy("Channel or server"), empty_value="–")
    def place(self, entry: AuditEntry) -> str | None:
        """Link to the channel by its name and its guild's, or to the guild's entries; by ID if it is gone."""
        channel, guild = getattr(entry, "channel_name", None), getattr(entry, "guild_name", None)
        server = None if entry.guild_id is None else show_hidden(guild or str(entry.guild_id))
        if entry.channel_id is not None:
            name = show_hidden(channel or str(entry.channel_id))
            label = name if server is None else _("%(channel)s (%(server)s)") % {"channel": name, "server": server}
            return format_html(_LINK, reverse("timeline", args=[entry.channel_id]), label)
        if server is None:
            return None
        return format_html(_LINK, f"{reverse('audit')}?server={entry.guild_id}", server)

    @admin.display(description=gettext_lazy("User"), empty_value="–")
    def chat_user(self, entry: AuditEntry) -> str | None:
        """Link to the page of the chat user concerned, by name, or by ID if there is none."""
        if entry.chat_user_id is None:
            return None
        name = getattr(entry, "chat_user_name", None) or name_unknown(entry.chat_user_id)
        return format_html(_LINK, reverse("user", args=[entry.chat_user_id]), show_hidden(name))

    @admin.display(description=gettext_lazy("Details"), empty_value="–")
    def facts(self, entry: AuditEntry) -> str | None:
        """Return what was recorded, in the words of the page of the audit log."""
        lines = ((label, show_hidden(value)) for label, value in all_facts(entry.details))
        return format_html_join(mark_safe("<br>"), "{}: {}", lines) or None

    @admin.display(description=gettext_lazy("Messages"), empty_value="–")
    def messages(self, entry: AuditEntry) -> str:
        """Return the IDs of all messages concerned, if they are stored beside the details."""
        return ", ".join(map(str, unpack_ids(entry.ids)))


@admin.register(RaidSettings)
class RaidSettingsAdmin(RecordedAdmin, KeysetAdmin):
    """When a guild's channels count as raided. A guild without a row has the defaults."""

    list_display = ("guild", "is_enabled", "messages_per_minute", "accounts")
    list_select_related = ("guild",)
    search_fields = ("guild__name", "=guild__id")
    autocomplete_fields = ("guild",)
    empty_text = gettext_lazy("All servers use the default settings. Add settings for a server to change them.")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False: to return to the defaults, they are entered."""
        return False
