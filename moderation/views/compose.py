"""Choosing what to remove: by conditions, over channels, or the messages ticked in a timeline."""

from __future__ import annotations

from dataclasses import replace

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from chatstore.domain.errors import BadInput, StoreUnavailable
from chatstore.models import Channel, Guild
from moderation.domain.selection import Selection
from moderation.forms import Composer, read_presets, ticked_in
from moderation.operations.access.visibility import Actor, channel_for, visible_channels
from moderation.operations.preview.bucket_strip import map_channel
from moderation.operations.purging.lifecycle import draft_purge
from moderation.operations.selection.parsing import select_described, select_ticked
from moderation.operations.selection.summary import say_selections
from moderation.presentation.strip import Strip
from moderation.tasks import ring_scan_on_commit
from moderation.views.session import actor_of


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required("moderation.add_purge", raise_exception=True)
def compose(request: HttpRequest, channel_id: int) -> HttpResponse:
    """The form for one channel; posted, what it describes becomes a purge that is scanned, not yet confirmed."""
    return _compose(request, channel_for(request.user, channel_id))


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required("moderation.add_purge", raise_exception=True)
def compose_everywhere(request: HttpRequest) -> HttpResponse:
    """The form for several channels, a whole guild, or wherever somebody posted."""
    return _compose(request, None)


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def compose_sentence(request: HttpRequest) -> HttpResponse:
    """What the form says so far, as a sentence; it is only read, nothing is looked for."""
    return render(request, "_compose_sentence.html", _say(request.user, Composer(request.POST)))


def _compose(request: HttpRequest, channel: Channel | None) -> HttpResponse:
    if request.method != "POST" or "widen" in request.POST:
        filled = request.POST if request.method == "POST" else read_presets(request.GET)
        return _show_form(request, channel, Composer(filled))
    composer = Composer(request.POST)
    try:
        purge = draft_purge(moderator=actor_of(request), selection=_read_selection(request, channel, composer))
    except BadInput as error:
        return _show_form(request, channel, composer, refused=str(error))
    ring_scan_on_commit(purge.pk)
    return redirect("purge", purge.pk)


def _read_selection(request: HttpRequest, channel: Channel | None, composer: Composer) -> Selection:
    if channel is not None and "ticked" in request.POST:
        return select_ticked(channel.pk, ticked_in(request.POST))
    return _select(request.user, composer, channel)


def _select(user: Actor, composer: Composer, channel: Channel | None = None) -> Selection:
    description = composer.read()
    if channel is not None:
        description = replace(description, channels=str(channel.pk), guild="")
    return select_described(description, user=user, now=timezone.now())


def _say(user: Actor, composer: Composer, channel: Channel | None = None) -> dict[str, str]:
    """The context of the sentence: what would go, or why that cannot be said yet."""
    if composer.is_empty:
        return {}
    try:
        selection = _select(user, composer, channel)
    except BadInput as error:
        return {"not_yet": str(error)}
    return {"sentence": say_selections(user, [selection])[0]}


def _map(channel: Channel) -> Strip | None:
    """The channel's strip; without the store one can still say what should go."""
    try:
        return map_channel(channel.pk)
    except StoreUnavailable:
        return None


def _show_form(request: HttpRequest, channel: Channel | None, form: Composer, *, refused: str = "") -> HttpResponse:
    context = {
        "channel": channel,
        "form": form,
        "refused": refused,
        "strip": _map(channel) if channel else None,
        "guilds": () if channel else _visible_guilds(request.user),
        **_say(request.user, form, channel),
    }
    return render(request, "compose.html", context, status=400 if refused else 200)


def _visible_guilds(user: Actor) -> list[Guild]:
    return list(Guild.objects.filter(pk__in=visible_channels(user).order_by().values("guild_id")))
