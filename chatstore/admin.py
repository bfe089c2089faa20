"""The admin's pages of the chat itself, and of staff; what other apps registered by themselves is replaced."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import ForeignKey, Model, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django_celery_beat import models as beat
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from chatstore.domain.errors import BadInput, StoreUnavailable
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.models import Channel, ChannelDay, ChatUser, Guild
from chatstore.operations.health.channel_health import read_channel_health
from chatstore.operations.rights import READ_HEALTH

# Its stock actions (run, enable, disable) check no permission: whoever may look could act.
for _schedule in (
    beat.ClockedSchedule,
    beat.CrontabSchedule,
    beat.IntervalSchedule,
    beat.PeriodicTask,
    beat.SolarSchedule,
):
    admin.site.unregister(_schedule)

# Registered again below, with Unfold's forms.
admin.site.unregister(User)
admin.site.unregister(Group)


SEARCH_CHARACTERS = 200
"""The longest name there is."""


class SnowflakeChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A choice by id. What can be no id is refused and not shown again: the widget would ask Postgres for it."""

    def prepare_value(self, value: Any) -> Any:
        """The id to show as chosen; None for what is none."""
        try:
            return parse_snowflake(super().prepare_value(value))
        except BadInput:
            return None


class NeverDeleted(ModelAdmin):  # type: ignore[misc]
    """Rows that messages in the store refer to: taking one away would orphan them."""

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField[Any] | None:
        """A field that puts up with whatever an address or a form names."""
        field: forms.ModelChoiceField[Any] | None = super().formfield_for_foreignkey(
            db_field, request, form_class=SnowflakeChoice, **kwargs
        )
        return field

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """What a term finds. Raises `BadInput` for one that is longer than any name."""
        if len(search_term) > SEARCH_CHARACTERS:
            raise BadInput(f"Type at most {SEARCH_CHARACTERS} characters to search for.")
        found: tuple[QuerySet[Any], bool] = super().get_search_results(request, queryset, search_term)
        return found

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never, whoever asks."""
        return False


@admin.register(Guild)
class GuildAdmin(NeverDeleted):
    """Guilds."""

    list_display = ("name", "id")
    search_fields = ("name", "=id")


@admin.register(Channel)
class ChannelAdmin(NeverDeleted):
    """Channels, threads and direct conversations; how their partitions are, for those who may read that."""

    list_display = ("name", "guild", "category", "kind", "id")
    list_filter = ("kind",)
    list_select_related = ("guild",)
    search_fields = ("name", "=id", "guild__name")
    autocomplete_fields = ("guild",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Channel]:
        """With the tombstones of the worst bucket on the last day when any were counted."""
        days = ChannelDay.objects.filter(channel_id=OuterRef("pk"), tombstones__isnull=False).order_by("-day")
        channels: QuerySet[Channel] = super().get_queryset(request)
        return channels.annotate(
            worst=Subquery(days.values("tombstones")[:1]), worst_on=Subquery(days.values("day")[:1])
        )

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """Tombstones too, with the right."""
        return (*self.list_display, *_health_fields(request, "tombstones", "health"))

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        """How its partitions are, with the right; not of one that is only being added."""
        return _health_fields(request, "partitions", "health") if obj is not None else ()

    @admin.display(description="Tombstones, worst bucket", ordering="worst")
    def tombstones(self, channel: Channel) -> str:
        """As last counted, and on which day."""
        worst: int | None = getattr(channel, "worst", None)
        return "not known" if worst is None else f"{worst:,} ({getattr(channel, 'worst_on', None):%d %b})"

    @admin.display(description="Partitions")
    def partitions(self, channel: Channel) -> str:
        """How many buckets are in which state, and the most tombstones of one."""
        try:
            health = read_channel_health(None, channel.pk)
        except StoreUnavailable as error:
            return str(error)
        states = ", ".join(f"{number:,} {state.value}" for state, number in sorted(health.states.items()))
        counted = [entry.known.tombstones for entry in health.buckets if entry.known.tombstones is not None]
        worst = f"{max(counted):,} tombstones in the worst" if counted else "tombstones not known"
        return f"{states or 'nothing was ever written'}; {worst}"

    @admin.display(description="Health")
    def health(self, channel: Channel) -> SafeString:
        """The way to the page."""
        return format_html('<a href="{}">Open its health</a>', reverse("channel_health", args=[channel.pk]))


def _health_fields(request: HttpRequest, *names: str) -> tuple[str, ...]:
    return names if request.user.has_perm(READ_HEALTH) else ()


@admin.register(ChatUser)
class ChatUserAdmin(NeverDeleted):
    """Those who write messages; not staff."""

    list_display = ("name", "display_name", "is_bot", "id")
    list_filter = ("is_bot",)
    search_fields = ("name", "display_name", "=id")


@admin.register(User)
class UserAdmin(StockUserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]
    """Staff accounts."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class GroupAdmin(StockGroupAdmin, ModelAdmin):  # type: ignore[misc]
    """Roles: moderators, operators, admins."""
