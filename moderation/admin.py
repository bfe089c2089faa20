"""Purges and the audit log in the admin, read-only."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib import admin
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import JSONArray, JSONObject
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from chatstore.admin_accounts import UserAdmin
from chatstore.admin_lists import NO_VALUE, KeysetAdmin, search_columns
from chatstore.admin_log import RecordedAdmin, register_recorder
from chatstore.domain.controls import show_hidden
from chatstore.domain.errors import BadInput
from chatstore.domain.roles import Grant, Role
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.roles import RoleGrant
from chatstore.models.users import User
from moderation.domain.packing import unpack_ids
from moderation.domain.selection import Selection
from moderation.domain.state_labels import STATE_LABELS, label_of_state, shown_state
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Invitation, Purge, RaidSettings
from moderation.operations.access.admin_changes import record_admin_change
from moderation.operations.selection.shown_states import filter_by_shown_state, with_shown_states, with_viewer
from moderation.operations.selection.summary import summarize_selections
from moderation.operations.steps.totals import EndedCounts, count_each_ended
from moderation.presentation.audit import AUDIT_ACTIONS, all_facts, is_by_visitor, label_of
from moderation.presentation.people import name_unknown
from moderation.presentation.roles import summarize_grants
from moderation.presentation.texts import translate

MAX_ACCOUNTS = 10
"""Maximum number of accounts whose user name contains what is searched for."""


_LINK = '<a href="{}" class="text-primary-600">{}</a>'

_SHOWN_ABOVE = {"author": "chat_user_id", "user": "chat_user_id", "channel": "channel_id", "guild": "guild_id"}
"""Details of an entry that are not shown if the field has the same ID: the page links it by name."""

_CHAT_USER = ("name", "display_name", "has_namesake", "has_twin")
"""Columns and annotations that a distinct name depends on."""

register_recorder(record_admin_change)


# Registered again with what this app knows of accounts.
admin.site.unregister(User)


@admin.register(User)
class StaffAdmin(UserAdmin):
    """Staff accounts with their roles, and with those among them that are invited."""

    list_display = ("username", "first_name", "last_name", "role_names", "has_second_factor", "status", "last_login")

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Return the accounts with the roles that they have now, and with the end of a link that was not used."""
        grants = RoleGrant.objects.in_force().filter(account=OuterRef("pk")).order_by()
        roles = grants.values(grant=JSONArray("role", "guild_id", "channel_id"))
        unused = Invitation.objects.filter(account=OuterRef("pk"), ended_at=None)
        return (
            super()
            .get_queryset(request)
            .annotate(current_roles=ArraySubquery(roles), invited_until=Subquery(unused.values("expires_at")))
        )

    @admin.display(description=gettext_lazy("Roles"))
    def role_names(self, account: User) -> str | None:
        """Return the roles, and in how many places the account has them. They have no effect on a superuser."""
        if account.is_superuser:
            return pgettext("role", "Superuser")
        grants = [Grant(Role(role), *place) for role, *place in vars(account)["current_roles"]]
        return summarize_grants(grants) or None

    @admin.display(description=gettext_lazy("Status"), ordering="is_active")
    def status(self, account: User) -> str:
        """Return whether the account can sign in, or has yet to use its link."""
        invited_until: dt.datetime | None = vars(account)["invited_until"]
        if not account.is_active:
            return pgettext("status of an account", "Not active")
        if invited_until is None:
            return pgettext("status of an account", "Active")
        if invited_until > timezone.now():
            return pgettext("status of an account", "Invited")
        return pgettext("status of an account", "Invitation expired")


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

    list_display = ("selection_label", "state_label", "moderator", "messages", "created_at", "finished_at")
    list_filter = (StateFilter,)
    list_select_related = ("moderator",)
    search_fields = ("=id", "moderator__username")
    # The page of a purge shows the rest in words.
    fields = (
        *("page", "state_label", "moderator", "reason", "created_at", "confirmed_at", "started_at", "finished_at"),
        *("scanned_messages", "messages", "held_messages", "wait_reason", "wait_until", "error"),
        *("selected", "selection_json"),
    )
    readonly_fields = (
        *("page", "state_label", "scanned_messages", "messages", "held_messages", "selected", "selection_json"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Purge]:
        """Return the purges with what their state alone does not say."""
        return with_viewer(request.user, with_shown_states(super().get_queryset(request)))

    def add_facts(self, rows: Sequence[Purge]) -> None:
        """Add what they select, in the words of other pages, and the numbers of messages that were not deleted."""
        listed = [purge for purge in rows if not purge.is_rewrite]
        summaries = summarize_selections(None, [Selection.from_json(purge.selection) for purge in listed])
        for purge, summary in zip(listed, summaries, strict=True):
            vars(purge)["selection_summary"] = summary
        ended = [purge.pk for purge in rows if purge.state == PurgeState.DONE_WITH_FAILURES]
        counts = count_each_ended(ended) if ended else {}
        for purge in rows:
            vars(purge)["ended_counts"] = counts.get(purge.pk)

    @admin.display(description=gettext_lazy("State"), ordering="state")
    def state_label(self, purge: Purge) -> str:
        """Return the label of the state, as on other pages."""
        shown = shown_state(
            purge.state,
            is_discarded=getattr(purge, "is_discarded", False),
            awaits_approval=getattr(purge, "awaits_approval", False),
        )
        counts: EndedCounts | None = getattr(purge, "ended_counts", None)
        if counts is None:
            return translate(label_of_state(shown, awaits_viewer=getattr(purge, "awaits_viewer", False)))
        return translate(label_of_state(shown, failed=counts.failed, held=counts.held))

    @admin.display(description=gettext_lazy("Purge"))
    def selection_label(self, purge: Purge) -> str:
        """Return what is selected. The list links it, and cuts long ones off."""
        label = self.selected(purge)
        return format_html('<span title="{}">{}</span>', label, label)

    @admin.display(description=gettext_lazy("Purge"))
    def page(self, purge: Purge) -> str:
        """Link to the page of the purge; the rewrite of a bucket has none."""
        if purge.is_rewrite:
            return _("Rewrite of a bucket")
        return format_html(_LINK, reverse("purge", args=[purge.pk]), _("Open purge"))

    @admin.display(description=gettext_lazy("Selection"))
    def selected(self, purge: Purge) -> str:
        """Return what was selected, in the words of other pages."""
        if purge.is_rewrite:
            return _("Rewrite of a bucket")
        return show_hidden(capfirst(vars(purge)["selection_summary"]))

    @admin.display(description=gettext_lazy("Selection as stored"))
    def selection_json(self, purge: Purge) -> SafeString:
        """Return the filter that is stored, folded."""
        stored = json.dumps(purge.selection, indent=2, ensure_ascii=False)
        return format_html(
            '<details><summary>{}</summary><pre class="whitespace-pre-wrap">{}</pre></details>',
            _("Show JSON"),
            show_hidden(stored),
        )

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

    list_display = ("at", "action_label", "actor_label", "purge_link", "place", "chat_user")
    list_filter = (ActionFilter,)
    list_select_related = ("actor",)
    search_fields = ("=id", "=channel_id", "=purge", "actor__username")
    fields = ("at", "action_label", "actor_label", "purge_link", "place", "chat_user", "facts", "messages")
    readonly_fields = ("action_label", "actor_label", "purge_link", "place", "chat_user", "facts", "messages")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Search for the ID of an entry, a channel or a purge, or for an actor."""
        return _search(queryset, search_term, ids=("pk", "channel_id", "purge"), staff="actor"), False

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        """Return the entries with names of their channels, guilds and users, and with what their purges select."""
        entries: QuerySet[AuditEntry] = super().get_queryset(request)
        channels = Channel.objects.filter(pk=OuterRef("channel_id"))
        guilds = Guild.objects.filter(pk=OuterRef("guild_id")).values("name")[:1]
        users = ChatUser.objects.with_namesakes().filter(pk=OuterRef("chat_user_id"))
        return entries.annotate(
            channel_name=Subquery(channels.values("name")[:1]),
            channel_kind=Subquery(channels.values("kind")[:1]),
            guild_name=Subquery(guilds),
            known_chat_user=Subquery(users.values(known=JSONObject(**{name: name for name in _CHAT_USER}))[:1]),
            is_of_rewrite=F("purge__is_rewrite"),
            purge_selection=F("purge__selection"),
        )

    def add_facts(self, rows: Sequence[AuditEntry]) -> None:
        """Add what was selected by the purges, in the words of other pages, and the channels of those with only one."""
        stored = {
            entry.purge_id: Selection.from_json(vars(entry)["purge_selection"])
            for entry in rows
            if entry.purge_id is not None and not vars(entry)["is_of_rewrite"]
        }
        channels: dict[int, Channel] = {}

        def find_channels(wanted: Iterable[int]) -> Mapping[int, Channel]:
            channels.update(Channel.objects.select_related("guild").in_bulk(wanted))
            return channels

        found = summarize_selections(None, [*stored.values()], find_channels=find_channels) if stored else []
        summaries = dict(zip(stored, found, strict=True))
        for entry in rows:
            selection = None if entry.purge_id is None else stored.get(entry.purge_id)
            vars(entry)["purge_summary"] = None if entry.purge_id is None else summaries.get(entry.purge_id)
            vars(entry)["purge_channel"] = None if selection is None else channels.get(selection.only_channel_id or 0)

    @admin.display(description=gettext_lazy("Actor"), ordering="actor")
    def actor_label(self, entry: AuditEntry) -> str:
        """Return the user name of the actor, or how the action happened without one, as the audit log says it."""
        if entry.actor is not None:
            return show_hidden(entry.actor.get_username())
        if is_by_visitor(entry.action):
            return pgettext("action without a person", "not signed in")
        return pgettext("action without a person", "automatic")

    @admin.display(description=gettext_lazy("Action"), ordering="action")
    def action_label(self, entry: AuditEntry) -> str:
        """Return the label of the action."""
        return label_of(entry.action)

    @admin.display(description=gettext_lazy("Purge"), ordering="purge")
    def purge_link(self, entry: AuditEntry) -> str:
        """Link to the page of the purge by what it selects; the rewrite of a bucket has none."""
        if entry.purge_id is None:
            return NO_VALUE
        if getattr(entry, "is_of_rewrite", False):
            return _("Rewrite of a bucket")
        summary = getattr(entry, "purge_summary", None) or _("purge %(id)s") % {"id": entry.purge_id}
        label = show_hidden(capfirst(summary))
        # A list cuts long ones off.
        link = '<a href="{}" class="text-primary-600" title="{}">{}</a>'
        return format_html(link, reverse("purge", args=[entry.purge_id]), label, label)

    @admin.display(description=gettext_lazy("Channel or server"))
    def place(self, entry: AuditEntry) -> str:
        """Link to the channel, or else that of the purge, by its name and its guild's, or to the guild's entries.

        By ID if it is gone.
        """
        channel, guild = getattr(entry, "channel_name", None), getattr(entry, "guild_name", None)
        server = None if entry.guild_id is None else show_hidden(guild or str(entry.guild_id))
        if entry.channel_id is not None:
            known = Channel(name=channel, kind=vars(entry)["channel_kind"]) if channel else entry.channel_id
            name = show_hidden(str(known))
            label = name if server is None else _("%(channel)s (%(server)s)") % {"channel": name, "server": server}
            return format_html(_LINK, reverse("timeline", args=[entry.channel_id]), label)
        of_purge: Channel | None = getattr(entry, "purge_channel", None)
        if of_purge is not None:
            return format_html(_LINK, reverse("timeline", args=[of_purge.pk]), show_hidden(of_purge.full_name))
        if server is None:
            return NO_VALUE
        return format_html(_LINK, f"{reverse('audit')}?server={entry.guild_id}", server)

    @admin.display(description=gettext_lazy("User"))
    def chat_user(self, entry: AuditEntry) -> str:
        """Link to the page of the chat user concerned, by name, or by ID if there is none."""
        if entry.chat_user_id is None:
            return NO_VALUE
        known: dict[str, Any] | None = getattr(entry, "known_chat_user", None)
        name = _distinct_name(entry.chat_user_id, **known) if known else name_unknown(entry.chat_user_id)
        return format_html(_LINK, reverse("user", args=[entry.chat_user_id]), show_hidden(name))

    @admin.display(description=gettext_lazy("Details"))
    def facts(self, entry: AuditEntry) -> str:
        """Return what was recorded, in the words of the page of the audit log."""
        details = {key: value for key, value in entry.details.items() if not _is_shown_above(entry, key, value)}
        lines = ((label, show_hidden(value)) for label, value in all_facts(details))
        return format_html_join(mark_safe("<br>"), "{}: {}", lines) or NO_VALUE

    @admin.display(description=gettext_lazy("Message IDs"))
    def messages(self, entry: AuditEntry) -> str:
        """Return the IDs of all messages concerned, if they are stored beside the details."""
        return ", ".join(map(str, unpack_ids(entry.ids))) or NO_VALUE


def _distinct_name(pk: int, *, name: str, display_name: str, has_namesake: bool, has_twin: bool) -> str:
    user = ChatUser(pk=pk, name=name, display_name=display_name)
    user.has_namesake, user.has_twin = has_namesake, has_twin
    return user.distinct_name


def _is_shown_above(entry: AuditEntry, key: str, value: Any) -> bool:
    if key == "note":
        # The page of the user, which is linked, has the note.
        return entry.chat_user_id is not None
    shown = getattr(entry, _SHOWN_ABOVE[key]) if key in _SHOWN_ABOVE else None
    return shown is not None and str(shown) == str(value)


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
