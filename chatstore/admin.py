"""The admin's pages of the chat itself, and of staff; what other apps registered by themselves is replaced."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.http import HttpRequest
from django_celery_beat import models as beat
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from chatstore.models import Channel, ChatUser, Guild

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


class NeverDeleted(ModelAdmin):  # type: ignore[misc]
    """Rows that messages in the store refer to: taking one away would orphan them."""

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
    """Channels, threads and direct conversations."""

    list_display = ("name", "guild", "category", "kind", "id")
    list_filter = ("kind",)
    list_select_related = ("guild",)
    search_fields = ("name", "=id", "guild__name")
    autocomplete_fields = ("guild",)


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
