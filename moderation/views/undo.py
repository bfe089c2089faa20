"""Undo: first shows what would be restored and asks for the reason, then requests it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from chatstore.domain.errors import BadInput, StoreUnavailable
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.models import Channel, ChatUser
from chatstore.operations.gateway.timeline import name_users
from moderation.forms import read_cursor, read_selected
from moderation.models import Purge
from moderation.operations.access.reads import record_purge_read
from moderation.operations.access.staff_names import mark_shared_names
from moderation.operations.access.visibility import VIEW_PURGES, purge_for, visible_channels
from moderation.operations.erasure.requests import open_request
from moderation.operations.lookup.message_history import part_of_message
from moderation.operations.preview.manifest import ManifestEntry, sample_restorable
from moderation.operations.preview.manifest_summary import summary_of
from moderation.operations.selection.summary import describe_purges
from moderation.operations.undo.requests import AlreadyRequested, UndoPart, offer_undo, request_undo
from moderation.presentation.people import name_unknown
from moderation.presentation.texts import messages_not_shown
from moderation.tasks import enqueue_on_commit
from moderation.views.manifest import entry_rows, name_mentioned_in
from moderation.views.session import actor_of

AUTHORS_NAMED = 5
MESSAGES_SHOWN = 5

_SAMPLE_OPTIONS = {"may_undo": False, "channel_id": None, "import_id": None, "has_several_channels": False}
"""What the rows of a purge's messages offer: here nothing but to open one."""


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required("moderation.add_purge", raise_exception=True)
def purge_undo(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Restore all of a purge, or one author's messages, one channel's, or the selected ones."""
    shown = purge_for(request.user, purge_id)
    part = _read_part(request.POST if request.method == "POST" else request.GET)
    return _ask_or_request(request, shown, part, fields=_fields_of(part), back=reverse("purge", args=[shown.pk]))


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required("moderation.add_purge", raise_exception=True)
def message_undo(request: HttpRequest, channel_id: int, message_id: int) -> HttpResponse:
    """Restore one message from the purge that `purge` names."""
    purge_id = parse_snowflake((request.POST if request.method == "POST" else request.GET).get("purge", ""))
    try:
        part = part_of_message(purge_id, user=request.user, channel_id=channel_id, message_id=message_id)
    except AlreadyRequested:
        return _redirect_to_earlier(purge_id)
    shown = purge_for(request.user, purge_id)
    back = reverse("message", args=[channel_id, message_id])
    return _ask_or_request(request, shown, part, fields={"purge": str(purge_id)}, back=back)


def _read_part(query: QueryDict) -> UndoPart:
    author, channel = (read_cursor(query, name) for name in ("author", "channel"))
    # An empty selection must not mean all.
    selected = read_selected(query) if query.keys() & {"selected", "message_id", "message_ids"} else ()
    return UndoPart(
        author_ids=() if author is None else (author,),
        channel_ids=() if channel is None else (channel,),
        message_ids=tuple(selected),
    )


def _fields_of(part: UndoPart) -> dict[str, str]:
    ids = {"author": part.author_ids, "channel": part.channel_ids, "message_ids": part.message_ids}
    return {name: " ".join(map(str, named)) for name, named in ids.items() if named}


def _ask_or_request(
    request: HttpRequest, purge: Purge, part: UndoPart, *, fields: Mapping[str, str], back: str
) -> HttpResponse:
    """Request the undo if the form contains a reason, otherwise show what it would restore and ask.

    fields: of the form that asks. back: path of the page to return to. Raises `BadInput` if nothing can be restored.
    """
    try:
        return _request_or_show(request, purge, part, fields=fields, back=back)
    except AlreadyRequested:
        return _redirect_to_earlier(purge.pk)


def _redirect_to_earlier(purge_id: int) -> HttpResponse:
    """Redirect to the page of the purge, which shows the request that came first, and says so."""
    return HttpResponseRedirect(f"{reverse('purge', args=[purge_id])}?undo=earlier")


def _request_or_show(
    request: HttpRequest, purge: Purge, part: UndoPart, *, fields: Mapping[str, str], back: str
) -> HttpResponse:
    moderator, error = actor_of(request), ""
    if request.method == "POST" and "reason" in request.POST:
        try:
            request_undo(purge.pk, moderator=moderator, part=part, reason=request.POST["reason"])
        except AlreadyRequested:
            raise
        except BadInput as rejected:
            error = rejected.text
        else:
            enqueue_on_commit(purge.pk)
            return HttpResponseRedirect(back)
    offer = offer_undo(purge.pk, moderator=moderator, part=part)
    known = visible_channels(request.user).select_related("guild").in_bulk(offer.channel_ids)
    channels = [known[channel_id] for channel_id in offer.channel_ids if channel_id in known]
    authors, author_count = _name_authors(purge, part, is_whole=offer.is_whole)
    sample, sample_error = _sample_of(request, purge, part, known)
    users = name_users(entry.message for entry in sample if entry.message is not None)
    mark_shared_names(request.user, [purge.moderator], right=VIEW_PURGES)
    context = {
        "nav": "purges",
        "purge": purge,
        "summary": describe_purges(request.user, [purge])[0].summary,
        "moderator": purge.moderator,
        "offer": offer,
        "channels": channels,
        "channel_count": offer.channel_count,
        "other_channels": offer.channel_count - len(channels),
        "ends_erasure_request": open_request(purge) is not None,
        "authors": authors,
        "other_authors": author_count - len(authors),
        "sample": entry_rows(purge, sample, users, may_exclude=False, may_undo=False),
        "sample_error": sample_error,
        **_SAMPLE_OPTIONS,
        "names_channels": offer.channel_count > 1,
        "is_all_shown": not sample_error and len(sample) == offer.count,
        "users": users,
        "mentioned": name_mentioned_in(request.user, sample),
        "part": part,
        "part_query": "?" + urlencode(_fields_of(part)),
        "fields": fields,
        "back": back,
        "reason": request.POST.get("reason", ""),
        "error_message": error,
    }
    return render(request, "moderation/purge/undo.html", context, status=400 if error else 200)


def _sample_of(
    request: HttpRequest, purge: Purge, part: UndoPart, channels: Mapping[int, Channel]
) -> tuple[list[ManifestEntry], str]:
    """Return some of the messages that come back there, or why they cannot be shown. Reading them is recorded."""
    try:
        sample = sample_restorable(purge, part, channels=channels, limit=MESSAGES_SHOWN)
    except StoreUnavailable as error:
        return [], messages_not_shown(error.text)
    if sample:
        channel_id = part.channel_ids[0] if part.channel_ids else None
        record_purge_read(request.user, purge, channel_id=channel_id, after="")
    return sample, ""


def _name_authors(purge: Purge, part: UndoPart, *, is_whole: bool) -> tuple[list[tuple[str, ChatUser | None]], int]:
    """Return the authors with most messages, named, and the number of authors; none if they are not counted.

    They are counted for the whole manifest only, not for what is left of it.
    """
    manifest = summary_of(purge)
    wanted = [author_id for author_id, _ in manifest.authors[:AUTHORS_NAMED]] if is_whole else part.author_ids
    known = ChatUser.objects.with_namesakes().in_bulk(wanted)
    authors = [(str(known.get(i) or name_unknown(i)), known.get(i)) for i in wanted]
    return authors, manifest.author_count if is_whole else len(authors)
