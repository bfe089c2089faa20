"""Presets and saved filters in the composer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from chatstore.domain.errors import BadInput
from chatstore.models import Channel
from moderation.forms import Composer, read_cursor
from moderation.models import SavedFilter
from moderation.models.saved_filters import MAX_NAME_CHARACTERS
from moderation.operations.access.visibility import Actor
from moderation.operations.selection.saved_filters import delete_filter, list_filters, recent_selections, save_filter
from moderation.operations.selection.summary import summarize_selections
from moderation.views.session import actor_of


class SaveForm(forms.Form):
    """Name of a filter to save."""

    filter_name = forms.CharField(required=False, max_length=MAX_NAME_CHARACTERS)
    filter_shared = forms.BooleanField(required=False)


@dataclass(frozen=True, slots=True)
class Filters:
    """Saved filters that can be applied. recent: (purge, summary) of the last ones used."""

    own: Sequence[SavedFilter]
    shared: Sequence[SavedFilter]
    recent: Sequence[tuple[int, str]]


PRESETS: tuple[tuple[Promise, str], ...] = (
    (gettext_lazy("Links by new accounts"), "account_days=7&has=link"),
    (gettext_lazy("First hour after joining"), "joined_minutes=60"),
    (gettext_lazy("First day of an author, with links"), "first_seen_hours=24&has=link"),
    (gettext_lazy("Mentions of everyone, last hour"), "any_words=%40everyone+%40here&after=last+hour"),
)
"""Filters that the composer offers to everyone: label, and query string."""


def describe_filters(user: Actor, channel: Channel | None) -> Filters:
    """Return the filters that the composer offers. channel: that they are applied to."""
    own, shared = list_filters(user)
    recent = recent_selections(user)
    selections = [selection for _, selection in recent]
    if channel is not None:
        selections = [
            replace(selection, channel_ids=(channel.pk,), guild_id=None, except_channel_ids=())
            for selection in selections
        ]
    summaries = dict(zip(summarize_selections(user, selections), (purge_id for purge_id, _ in recent), strict=True))
    return Filters(own, shared, [(purge_id, summary) for summary, purge_id in summaries.items()])


def save_typed(request: HttpRequest, composer: Composer) -> HttpResponse:
    """Save what is typed in the composer, and show it there. Raises `BadInput`."""
    form = SaveForm(request.POST)
    if not form.is_valid():
        raise BadInput(next(str(errors[0]) for errors in form.errors.values()))
    saved = save_filter(
        composer.read(),
        moderator=actor_of(request),
        name=form.cleaned_data["filter_name"],
        is_shared=form.cleaned_data["filter_shared"],
    )
    replaced = read_cursor(request.POST, "preview")
    query = {"filter": saved.pk} | ({} if replaced is None else {"preview": replaced})
    return HttpResponseRedirect(f"{request.path}?{urlencode(query)}")


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def filter_delete(request: HttpRequest, filter_id: int) -> HttpResponse:
    """Delete a saved filter of one's own."""
    delete_filter(filter_id, moderator=actor_of(request))
    channel_id = read_cursor(request.POST, "channel")
    return redirect(reverse("compose_everywhere") if channel_id is None else reverse("compose", args=[channel_id]))
