"""The composer: select messages by conditions, over channels, or those selected in a timeline."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, StoreUnavailable, TooManyTombstones
from chatstore.models import Channel, ChatUser
from chatstore.operations.gateway.timeline import count_buckets
from chatstore.operations.health.channel_list import guild_names
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.forms import (
    PERIODS,
    Composer,
    choose_candidate,
    identify_form,
    presets_of,
    read_cursor,
    read_presets,
    selected_ids,
)
from moderation.models import Purge
from moderation.operations.access.visibility import ADD_PURGE, Actor, channel_for, purge_for, visible_channels
from moderation.operations.lookup.mentioned import name_mentioned
from moderation.operations.preview.bucket_strip import map_channel
from moderation.operations.preview.first_matches import find_first_matches
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.lifecycle import AlreadyDrafted, discard_preview, draft_purge
from moderation.operations.selection.by_name import sort_by_activity
from moderation.operations.selection.parsing import (
    MAX_CANDIDATES,
    AmbiguousName,
    Description,
    describe_conditions,
    parse_selection,
    select_messages,
)
from moderation.operations.selection.saved_filters import saved_filter_for
from moderation.operations.selection.scope import visible_part
from moderation.operations.selection.summary import summarize_selections
from moderation.presentation.strip import BESIDE_CHANNELS, Strip
from moderation.presentation.texts import translate
from moderation.tasks import enqueue_scan_on_commit
from moderation.views.picks import Pick, count_messages_of, describe_cut, describe_fields, describe_rows, has_place
from moderation.views.rows import rows_of
from moderation.views.saved_filters import PRESETS, describe_filters, save_typed
from moderation.views.session import actor_of

MAX_BUCKETS_AT_ONCE = 10
"""Buckets that are scanned within the request, side by side; in the worst case each is read as a whole."""


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required("moderation.add_purge", raise_exception=True)
def compose(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Show the form for one channel. Posted, it drafts a purge, which is scanned but not confirmed."""
    return _compose(request, channel_for(request.user, channel_id, ADD_PURGE))


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required("moderation.add_purge", raise_exception=True)
def compose_everywhere(request: HttpRequest) -> HttpResponse:
    """Show the form for several channels, a guild, or all channels that an author posted in."""
    return _compose(request, None)


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def compose_summary(request: HttpRequest) -> HttpResponse:
    """Render the form's selection in words.

    No messages are searched, but to count those of users of the same name; only one that the form links to is read.
    """
    return render(
        request, "moderation/compose/_summary.html", _describe_selection(request.user, Composer(request.POST))
    )


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def compose_matches(request: HttpRequest) -> HttpResponse:
    """Render the first matches of the form's selection; nothing while it is incomplete."""
    composer = Composer(request.POST)
    context: dict[str, Any] = {}
    if not composer.is_empty:
        try:
            context = _describe_matches(request.user, _select(request.user, composer))
        except StoreUnavailable as error:
            context = {"matches_error": translate(error.text)}
        except BadInput:
            # The summary says what has to be fixed.
            context = {}
    return render(request, "moderation/compose/_live_matches.html", context)


def _describe_matches(user: Actor, selection: Selection) -> dict[str, Any]:
    matches = find_first_matches(user, selection)
    rows = rows_of((message for _, message in matches.newest), matches.users)
    people = {message.author_id: matches.users.get(message.author_id) for _, message in matches.newest}
    known = [person for person in people.values() if person is not None]
    notes = {person.pk: pick.note for person, pick in zip(known, describe_rows(known), strict=True)}
    lines = [
        (row, channel, notes.get(message.author_id, ""))
        for row, (channel, message) in zip(rows, matches.newest, strict=True)
    ]
    messages, channels = [message for _, message in matches.newest], [channel for channel, _ in matches.newest]
    mentioned = name_mentioned(user, messages, channels=channels)
    return {"matches": matches, "match_rows": lines, "users": matches.users, "mentioned": mentioned}


def _compose(request: HttpRequest, channel: Channel | None) -> HttpResponse:
    if request.method != "POST" or "widen" in request.POST:
        filled = request.POST if request.method == "POST" else _read_presets(request)
        return _show_form(request, channel, Composer(filled))
    if "save" in request.POST:
        try:
            return save_typed(request, Composer(request.POST))
        except BadInput as error:
            return _show_form(request, channel, Composer(request.POST), error_message=error.text)
    if "choose" in request.POST:
        return _show_form(request, channel, Composer(choose_candidate(request.POST)))
    composer, replaced = Composer(request.POST), _read_replaced(request)
    try:
        selection = _read_selection(request, channel, composer)
        replaces = replaced.pk if replaced is not None else None
        purge = draft_purge(
            moderator=actor_of(request), selection=selection, replaces=replaces, sent_form=identify_form(request)
        )
    except AlreadyDrafted as earlier:
        return redirect("purge", earlier.purge_id)
    except AmbiguousName as error:
        return _show_form(request, channel, composer, error_message=error.question)
    except BadInput as error:
        return _show_form(request, channel, composer, error_message=error.text)
    if replaced is not None:
        discard_preview(replaced.pk, moderator=actor_of(request), replaced_by=purge.pk)
    if not _scan_at_once(purge, selection):
        enqueue_scan_on_commit(purge.pk)
    return redirect("purge", purge.pk)


def _read_presets(request: HttpRequest) -> QueryDict:
    """Return the fields that the URL fills in.

    By name, with the saved filter that `filter` names, or with the selection of the purge that `used` or `preview`
    names, of which a new preview replaces the latter. With `typed`, the form keeps itself in the URL: only names count.
    """
    if "typed" in request.GET:
        return read_presets(request.GET)
    filter_id, used, replaced = (read_cursor(request.GET, name) for name in ("filter", "used", "preview"))
    if filter_id is not None:
        return presets_of(saved_filter_for(actor_of(request), filter_id))
    purge_id = replaced if used is None else used
    if purge_id is None:
        return read_presets(request.GET)
    selection = Selection.from_json(purge_for(request.user, purge_id).selection)
    description = describe_conditions(visible_part(selection, request.user))
    return QueryDict() if description is None else presets_of(description)


def _read_replaced(request: HttpRequest) -> Purge | None:
    """Return the user's own preview that the new one replaces, or None."""
    purge_id = read_cursor(request.POST if request.method == "POST" else request.GET, "preview")
    if purge_id is None:
        return None
    purge = purge_for(request.user, purge_id)
    is_open = purge.state in (PurgeState.SCANNING, PurgeState.READY)
    return purge if is_open and purge.moderator_id == actor_of(request).pk else None


def _scan_at_once(purge: Purge, selection: Selection) -> bool:
    """Scan messages that were selected on a page, without waiting for a worker; return whether that was possible."""
    if not selection.message_ids or len({bucket_of(i) for i in selection.message_ids}) > MAX_BUCKETS_AT_ONCE:
        return False
    try:
        scan_purge(purge.pk)
    except (StoreUnavailable, TooManyTombstones):
        return False
    return True


def _read_selection(request: HttpRequest, channel: Channel | None, composer: Composer) -> Selection:
    if channel is not None and "selected" in request.POST:
        return select_messages(channel.pk, selected_ids(request.POST))
    return _select(request.user, composer, channel)


def _select(user: Actor, composer: Composer, channel: Channel | None = None) -> Selection:
    return parse_selection(_in_channel(composer.read(), channel), user=user, now=timezone.localtime())


def _in_channel(description: Description, channel: Channel | None) -> Description:
    if channel is None:
        return description
    return replace(description, channels=str(channel.pk), except_channels="", guild="")


def _describe_selection(user: Actor, composer: Composer, channel: Channel | None = None) -> dict[str, Any]:
    """Return the context of the summary: the selection, or what has to be fixed first."""
    if composer.is_empty:
        return {}
    try:
        selection = _select(user, composer, channel)
    except AmbiguousName as error:
        return {
            "incomplete": error.question,
            "candidates": _describe_candidates(user, error, composer, channel),
            "candidates_cut": describe_cut(error),
        }
    except BadInput as error:
        return {"incomplete": error.text}
    return {"summary": summarize_selections(user, [selection])[0]}


def _describe_candidates(user: Actor, error: AmbiguousName, composer: Composer, channel: Channel | None) -> list[Pick]:
    """Return what a name may mean: users with the number of their messages in the form's places, the most first.

    Without places, those that posted last are offered.
    """
    rows, counted = error.candidates, dict[int, str]()
    people = [row for row in error.everyone if isinstance(row, ChatUser)]
    # Without a valid place or the store, the names remain.
    with suppress(BadInput, StoreUnavailable, TooManyTombstones):
        place = _in_channel(composer.read_reach(), channel)
        if len(people) > MAX_CANDIDATES and not has_place(place):
            rows = people = sort_by_activity(people, visible_channels(user, ADD_PURGE))[:MAX_CANDIDATES]
        counted = count_messages_of(user, [person.pk for person in people], place)
        known = {person.pk: person for person in people}
        rows = [known[pk] for pk in counted][:MAX_CANDIDATES] or rows
    kind = "channel" if error.is_of_channels else "author"
    return [
        pick._replace(
            value=f"{kind}:{pick.value}:{error.name}",
            facts=(*pick.facts, *filter(None, [counted.get(row.pk)])),
        )
        for row, pick in zip(rows, describe_rows(rows), strict=True)
    ]


def _map(channel: Channel) -> Strip | None:
    """Return the channel's strip, or None: the form works without the store."""
    try:
        return map_channel(count_buckets(channel.pk), width=BESIDE_CHANNELS)
    except StoreUnavailable:
        return None


def _show_form(
    request: HttpRequest, channel: Channel | None, form: Composer, *, error_message: str = ""
) -> HttpResponse:
    replaced = _read_replaced(request)
    context = {
        "nav": "purges",
        "channel": channel,
        "heading": _format_heading(channel),
        "form": form,
        "error_message": error_message,
        "strip": _map(channel) if channel else None,
        "guilds": () if channel else guild_names(request.user, ADD_PURGE),
        "replaced": replaced,
        "filters": describe_filters(request.user, channel),
        "presets": PRESETS,
        "periods": PERIODS,
        "filter_name": request.POST.get("filter_name", ""),
        "applied": read_cursor(request.GET, "filter"),
        "keeps": f"&preview={replaced.pk}" if replaced else "",
        "picks": describe_fields(request.user, form),
        **_describe_selection(request.user, form, channel),
    }
    return render(request, "moderation/compose/compose.html", context, status=400 if error_message else 200)


def _format_heading(channel: Channel | None) -> str:
    if channel is None:
        return gettext("Delete messages")
    if channel.guild is None:
        return gettext("Delete messages from %(channel)s") % {"channel": channel}
    return gettext("Delete messages from %(channel)s (%(guild)s)") % {"channel": channel, "guild": channel.guild.name}
