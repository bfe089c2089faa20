"""The page of a guild's settings for the detection of raids."""

from __future__ import annotations

from typing import Any, NamedTuple

from django import forms
from django.contrib.auth.decorators import permission_required
from django.core.validators import MaxValueValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from chatstore.domain.errors import BadInput
from moderation.models import RaidSettings
from moderation.operations.lookup.audit_log import VIEW_AUDIT
from moderation.operations.raids.settings import CHANGE_RAID_SETTINGS, FIELDS, raid_settings_for, set_raid_settings
from moderation.views.saved import redirect_saved
from moderation.views.session import actor_of


class Row(NamedTuple):
    """A field with its default and the largest number. is_changed: the default does not apply."""

    field: forms.BoundField
    default: int
    most: int
    is_changed: bool


def _maximum_of(name: str) -> int:
    validators = [one for field in RaidSettings._meta.fields if field.name == name for one in field.validators]
    return min(int(one.limit_value) for one in validators if isinstance(one, MaxValueValidator))


class RaidSettingsForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """The fields that the admin has too, each with its default."""

    class Meta:
        model = RaidSettings
        fields = FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            if name != "is_enabled":
                field.widget = forms.TextInput(attrs={"inputmode": "numeric", "maxlength": 6, "autocomplete": "off"})
            field.widget.attrs["aria-describedby"] = f"about-{name}"

    def rows(self) -> list[Row]:
        """Return the fields with a number."""
        defaults = RaidSettings()
        return [
            Row(self[name], default, _maximum_of(name), is_changed=getattr(self.instance, name) != default)
            for name in FIELDS
            if name != "is_enabled" and (default := getattr(defaults, name))
        ]


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(CHANGE_RAID_SETTINGS, raise_exception=True)
def raid_settings(request: HttpRequest, guild_id: int) -> HttpResponse:
    """Show and change them. Posted with `reset`, the defaults are restored."""
    settings = raid_settings_for(request.user, guild_id)
    guild, error_message = settings.guild, ""
    form = RaidSettingsForm(request.POST if request.method == "POST" else None, instance=settings)
    if request.method == "POST":
        values = {} if "reset" in request.POST else form.cleaned_data if form.is_valid() else None
        if values is not None:
            try:
                set_raid_settings(guild_id, values, actor=actor_of(request))
            except BadInput as error:
                error_message = error.text
            else:
                return redirect_saved(request.path)
    context = {
        "guild": guild,
        "form": form,
        "error_message": error_message,
        "may_view_audit": request.user.has_perm(VIEW_AUDIT),
    }
    status = 400 if request.method == "POST" else 200
    return render(request, "moderation/raids/settings.html", context, status=status)
