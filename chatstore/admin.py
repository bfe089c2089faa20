"""Admin pages of the chat. Registrations of other apps are replaced."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.dateformat import format as date_format
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy
from django_celery_beat import models as beat

from chatstore import admin_accounts  # noqa: F401  Django imports only `admin`.
from chatstore.admin_guilds import GuildForm
from chatstore.admin_lists import NO_VALUE, KeysetAdmin, search_names
from chatstore.admin_log import RecordedAdmin
from chatstore.domain.controls import show_hidden
from chatstore.domain.errors import BadInput
from chatstore.domain.health import ChannelState
from chatstore.domain.texts import Size
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.names import LONGEST_NAME, NamedQuerySet
from chatstore.operations.findings.channels import findings_of_channels
from chatstore.operations.health.summaries import known_of
from chatstore.operations.rights import READ_HEALTH

# Its stock actions (run, enable, disable) check no permission, so viewers could run them.
for _schedule in (
    beat.ClockedSchedule,
    beat.CrontabSchedule,
    beat.IntervalSchedule,
    beat.PeriodicTask,
    beat.SolarSchedule,
):
    admin.site.unregister(_schedule)

admin.site.empty_value_display = NO_VALUE

_CHANNEL_STATES: dict[ChannelState, Promise] = {
    ChannelState.MISSING_MESSAGES: pgettext_lazy("state of a channel", "messages missing"),
    ChannelState.TOMBSTONES: pgettext_lazy("state of a channel", "too many tombstones"),
    ChannelState.HEAVY: pgettext_lazy("state of a channel", "too large"),
    ChannelState.SLOW: pgettext_lazy("state of a channel", "slow"),
    ChannelState.UNKNOWN: pgettext_lazy("state of a channel", "unknown"),
    ChannelState.HEALTHY: pgettext_lazy("state of a channel", "healthy"),
}

_HEALTHY_SO_FAR = pgettext_lazy("state of a channel", "healthy so far")
"""Its tombstones were never counted."""

_FIGURES = ("state", "tombstones", "size")
_OTHER_FIGURES = ("newest_page", "empty_buckets", "uncovered", "last_purge", "open_findings")
"""Figures of a channel, from its row in the table of all channels; the list shows only the first three."""


class NeverDeleted(RecordedAdmin, KeysetAdmin):
    """Rows that messages in the store refer to. Deleting one would orphan the messages."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search for a term. Raises `BadInput` for one that is longer than any name."""
        if len(search_term) > LONGEST_NAME:
            raise BadInput(_("Enter at most %(count)s characters to search for.") % {"count": LONGEST_NAME})
        if search_term and isinstance(queryset, NamedQuerySet):
            return search_names(queryset, search_term), False
        found: tuple[QuerySet[Any], bool] = super().get_search_results(request, queryset, search_term)
        return found

    @admin.display(description=gettext_lazy("Name"))
    def shown_name(self, row: Guild | Channel | ChatUser) -> str | None:
        """Return the name with its hidden characters. The list links it, and may cut it off."""
        return _name(row.name)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        """Return the ID of an existing row: another one would be a copy without messages."""
        return ("id",) if obj is not None else ()

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False for every account."""
        return False


@admin.register(Guild)
class GuildAdmin(NeverDeleted):
    """Guilds. Several channels can be added with one."""

    list_display = ("shown_name", "id")
    search_fields = ("name", "=id")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Return a form with a field for new channels for accounts that may add them."""
        may_save = self.has_add_permission(request) if obj is None else self.has_change_permission(request, obj)
        if may_save and admin.site.get_model_admin(Channel).has_add_permission(request):
            kwargs["form"] = GuildForm
        return super().get_form(request, obj, change=change, **kwargs)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Add the new channels, each as if it had been added by its own form."""
        super().save_related(request, form, formsets, change)
        for channel in form.cleaned_data.get("new_channels", ()):
            channel.guild = form.instance
            channel.save(force_insert=True)
            admin.site.get_model_admin(Channel).log_addition(request, channel, [{"added": {}}])


@admin.register(Channel)
class ChannelAdmin(NeverDeleted):
    """Channels, threads and direct messages, with their health for accounts that may read it."""

    list_display = ("shown_name", "shown_guild")
    list_filter = ("kind",)
    list_select_related = ("guild", "summary")
    search_fields = ("name", "=id", "guild__name")
    autocomplete_fields = ("guild",)

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """Return the columns, with health for accounts that may read it."""
        return (*self.list_display, *_health_fields(request, *_FIGURES, "health"))

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        """Return the health fields of an existing channel for accounts that may read them."""
        health = _health_fields(request, *_FIGURES, *_OTHER_FIGURES, "health") if obj is not None else ()
        return (*super().get_readonly_fields(request, obj), *health)

    @admin.display(description=gettext_lazy("Name"))
    def shown_name(self, row: Guild | Channel | ChatUser) -> str | None:
        """Return the name as other pages show it: "#general"."""
        return _name(str(row))

    @admin.display(description=gettext_lazy("Server"))
    def shown_guild(self, channel: Channel) -> str | None:
        """Return the name of the server; None for a direct message."""
        return None if channel.guild is None else _name(channel.guild.name)

    @admin.display(description=gettext_lazy("State"))
    def state(self, channel: Channel) -> str:
        """Return the state that the table of all channels shows."""
        state, known = ChannelState(channel.summary.state), known_of(channel.summary)
        is_proven = state != ChannelState.HEALTHY or known.are_tombstones_known
        return str(_CHANNEL_STATES[state] if is_proven else _HEALTHY_SO_FAR)

    @admin.display(description=gettext_lazy("Tombstones, worst bucket"))
    def tombstones(self, channel: Channel) -> str:
        """Return the last count and its day."""
        tombstones = channel.summary.tombstones
        shown = None if tombstones is None else number_format(tombstones, force_grouping=True)
        return _with_day(shown, channel.summary.tombstones_at)

    @admin.display(description=gettext_lazy("Largest partition"))
    def size(self, channel: Channel) -> str:
        """Return the last size and its day."""
        size = channel.summary.bytes
        return _with_day(None if size is None else str(Size(size)), channel.summary.bytes_at)

    @admin.display(description=gettext_lazy("Newest page"))
    def newest_page(self, channel: Channel) -> str:
        """Return the last duration and its day."""
        page_us = channel.summary.page_us
        if page_us is None:
            return NO_VALUE
        milliseconds = page_us / 1000
        digits = 0 if milliseconds >= 99.95 else 1
        # Django's own formatting truncates.
        shown = _("%(number)s ms") % {"number": number_format(Decimal(f"{milliseconds:.{digits}f}"), digits)}
        return _with_day(shown, channel.summary.page_at)

    @admin.display(description=gettext_lazy("Empty buckets"))
    def empty_buckets(self, channel: Channel) -> str:
        """Return the number of empty buckets, and of all that were ever written."""
        summary = channel.summary
        if summary.buckets is None or summary.empty_buckets is None:
            return NO_VALUE
        return _("%(empty)s of %(count)s") % {
            "empty": number_format(summary.empty_buckets, force_grouping=True),
            "count": number_format(summary.buckets, force_grouping=True),
        }

    @admin.display(description=gettext_lazy("Deletes not repaired"))
    def uncovered(self, channel: Channel) -> str:
        """Return the number of deletes that no repair covers."""
        deletes = channel.summary.uncovered_deletes
        if deletes is None:
            return NO_VALUE
        text = ngettext("%(count)s delete", "%(count)s deletes", deletes)
        return text % {"count": number_format(deletes, force_grouping=True)}

    @admin.display(description=gettext_lazy("Last purge"))
    def last_purge(self, channel: Channel) -> str:
        """Return the day on which the last purge in the channel ended."""
        ended_at = channel.summary.last_purged_at
        return _("none") if ended_at is None else date_format(ended_at, pgettext("date format", "j M Y"))

    @admin.display(description=gettext_lazy("Open findings"))
    def open_findings(self, channel: Channel) -> str:
        """Return the sentences of its open findings, worst first; its state may follow from them."""
        found = findings_of_channels([channel.pk]).get(channel.pk, [])
        return " ".join(show_hidden(str(finding.summary)) for finding in found) or _("none")

    @admin.display(description=gettext_lazy("Health"))
    def health(self, channel: Channel) -> SafeString:
        """Link to the health page of the channel."""
        return format_html('<a href="{}">{}</a>', reverse("channel_health", args=[channel.pk]), _("Open health"))


def _name(name: str) -> str | None:
    if not name:
        return None
    shown = show_hidden(name)
    return format_html('<span title="{}">{}</span>', shown, shown)


def _with_day(figure: str | None, measured_at: dt.datetime | None) -> str:
    """Return a figure and the day on which it was measured: "1,204 on 3 Mar", or "–"."""
    if figure is None or measured_at is None:
        return NO_VALUE
    day = date_format(measured_at, pgettext("date format", "j M"))
    return _("%(count)s on %(day)s") % {"count": figure, "day": day}


def _health_fields(request: HttpRequest, *names: str) -> tuple[str, ...]:
    return names if request.user.has_perm(READ_HEALTH) else ()


@admin.register(ChatUser)
class ChatUserAdmin(NeverDeleted):
    """Chat users, the authors of messages. Staff accounts are `User`."""

    list_display = ("shown_name", "shown_display_name", "bot", "id")
    # A user may have no name.
    list_display_links = ("shown_name", "id")
    list_filter = ("is_bot",)
    search_fields = ("name", "display_name", "=id")

    @admin.display(description=gettext_lazy("Display name"))
    def shown_display_name(self, user: ChatUser) -> str | None:
        """Return the display name with its hidden characters; None if there is none."""
        return _name(user.display_name)

    @admin.display(description=gettext_lazy("Bot"))
    def bot(self, user: ChatUser) -> str:
        """Return "yes" or "no": the icon of a false value looks like a fault of nearly every user."""
        return _("yes") if user.is_bot else _("no")
