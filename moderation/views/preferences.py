"""The preferences of the signed-in account: language and time zone."""

from __future__ import annotations

from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from moderation.models import Preferences
from moderation.views.saved import redirect_saved
from moderation.views.session import actor_of


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Language and time zone as chosen."""

    language = forms.ChoiceField(required=False, label=_("Language"))
    time_zone = forms.ChoiceField(label=_("Time zone"))

    class Meta:
        model = Preferences
        fields = ("language", "time_zone")

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        # Read here, since tests add languages to the settings.
        self.fields["language"].choices = [("", _("Browser’s language")), *settings.LANGUAGES]  # type: ignore[attr-defined]
        self.fields["time_zone"].choices = [(name, name) for name in _zones()]  # type: ignore[attr-defined]


# Every signed-in account has preferences, whatever its rights: no permission is required.
@require_http_methods(["GET", "HEAD", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    """Show the account's preferences, or save them."""
    account = actor_of(request)
    kept = Preferences.objects.filter(pk=account.pk).first() or Preferences(account=account)
    form = PreferencesForm(request.POST if request.method == "POST" else None, instance=kept)
    if request.method == "POST" and form.is_valid():
        form.save()
        return redirect_saved(request.path)
    status = 400 if request.method == "POST" else 200
    return render(request, "moderation/account/preferences.html", {"form": form}, status=status)


def _zones() -> list[str]:
    """Return the names of all time zones, UTC first."""
    return ["UTC", *sorted(available_timezones() - {"UTC", "localtime"})]
