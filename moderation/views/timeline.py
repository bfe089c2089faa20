"""A channel as a chat: its pages, its strip, the rows that scrolling and polling fetch, and deleting one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from chatstore.domain.errors import BadInput
from chatstore.domain.members import MemberRole
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, parse_snowflake
from chatstore.models import Channel
from chatstore.operations.gateway.timeline import Timeline, count_buckets, open_timeline
from chatstore.operations.members import highest_roles
from chatstore.operations.rights import VIEW_CHANNELS, require
from moderation.domain.datetimes import first_id_from, parse_datetime
from moderation.domain.selection import MAX_SELECTED_MESSAGES
from moderation.forms import Position, read_cursor, read_position
from moderation.operations.access.visibility import ADD_PURGE, channel_for, may_in
from moderation.operations.lookup.gaps import find_gaps
from moderation.operations.lookup.mentioned import name_mentioned
from moderation.operations.lookup.new_messages import read_new_messages, state_of
from moderation.operations.lookup.pinned import pin_channel, unpin_channel
from moderation.operations.lookup.sidebar import entrance_of, open_sidebar, sidebar_of
from moderation.operations.preview.bucket_strip import map_channel
from moderation.operations.preview.single_message import delete_message
from moderation.presentation.page_urls import url_of
from moderation.presentation.strip import BESIDE_CHANNELS
from moderation.presentation.texts import translate
from moderation.presentation.typed_dates import print_typed
from moderation.presentation.wording import format_datetime
from moderation.tasks import enqueue_on_commit
from moderation.views.rows import RUN_SECONDS, GapLine, collapse_gaps, lay_out
from moderation.views.session import actor_of


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def timeline(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Show a page of the channel: the newest, or the one at the position in the URL."""
    channel = channel_for(request.user, channel_id)
    position = read_position(request.GET)
    removals = state_of(request.user, channel.pk).removals
    refusal = ""
    # Before the messages: these use the ledger that is read here.
    counts = count_buckets(channel.pk)
    try:
        opened, position, notice = _open(channel, position)
    except BadInput as error:
        # A date that was typed on the page, which stays in its field.
        refusal = translate(error.text)
        opened, position, notice = _open(channel, Position())
    messages = opened.messages
    here = range(messages[0].bucket, messages[-1].bucket + 1) if messages else None
    context = {
        "channel": channel,
        "sidebar": open_sidebar(request.user, channel),
        "strip": map_channel(counts, here=here, width=BESIDE_CHANNELS),
        "notice": notice,
        "at_newest": position == Position(),
        "removals": removals,
        "before_all": MIN_ID,
        "run_seconds": RUN_SECONDS,
        "max_selected": MAX_SELECTED_MESSAGES,
        "at": request.GET.get("at", ""),
        "refusal": refusal,
        **_rows_context(request, channel, opened, position),
    }
    return render(request, "moderation/timeline/timeline.html", context, status=400 if refusal else 200)


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def sidebar(request: HttpRequest) -> HttpResponse:
    """Return the guilds and channels beside a page. `channel`: what the page is about; `open`: it is its timeline."""
    channel_id = read_cursor(request.GET, "channel")
    channel = None if channel_id is None else channel_for(request.user, channel_id)
    listed = sidebar_of(request.user, channel, is_open="open" in request.GET)
    return render(request, "moderation/shared/_sidebar.html", {"sidebar": listed})


@require_POST
@permission_required("chatstore.view_channel", raise_exception=True)
def channel_pin(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Pin a channel, or unpin it with `unpin`."""
    actor = actor_of(request)
    if "unpin" in request.POST:
        unpin_channel(channel_id, actor=actor)
    else:
        pin_channel(channel_id, actor=actor)
    return redirect("timeline", channel_id)


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def guild(request: HttpRequest, guild_id: int) -> HttpResponse:
    """Redirect to the guild's most recently active channel."""
    return HttpResponseRedirect(url_of("timeline", entrance_of(request.user, guild_id).pk) + "#end")


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def timeline_rows(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Return the rows before or after an ID, as the fragment that replaces the end of a page.

    until: the last ID of those after one.
    """
    channel = channel_for(request.user, channel_id)
    position = read_position(request.GET)
    if position.before is None and position.after is None:
        raise BadInput(gettext("Name a message ID in “before” or “after”."))
    opened = open_timeline(channel.pk, before=position.before, after=position.after)
    until = read_cursor(request.GET, "until")
    if until is not None and position.after is not None:
        opened = opened.until(until)
        if opened.page.newer is None:
            position = replace(position, before=min(until + 1, MAX_ID))
    context = _rows_context(request, channel, opened, position)
    context["only"] = "newer" if position.after is not None else "older"
    return render(request, "moderation/timeline/_rows.html", context)


@require_safe
def timeline_new(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Return the rows after the newest one of the page, for the script that polls; 204 while nothing has changed.

    Some rows before it are included: the script leaves out what the page has. Without a version in the response there
    are more rows. With `past` the page ends before the newest rows, and none are returned. If the response's removals
    are not those that the page knows, the script reads its rows again.

    The rights are not read while nothing has changed: a quarter of what each poll of each open page cost. The version
    is signed for this account and holds for a minute at most, and a role that is taken ends its sessions.
    """
    state = state_of(request.user, channel_id)
    if request.GET.get("version") == state.version:
        return HttpResponse(status=204)
    require(request.user, VIEW_CHANNELS)
    channel = channel_for(request.user, channel_id)
    if "past" in request.GET:
        response, is_whole = HttpResponse(), True
    else:
        opened = read_new_messages(channel.pk, newest=read_cursor(request.GET, "newest"))
        is_whole = opened.page.newer is None
        context = _messages_context(request, channel, opened)
        response = render(request, "moderation/timeline/_new_rows.html", context)
    response["X-Timeline-Removals"] = state.removals
    if is_whole:
        response["X-Timeline-Version"] = state.version
    return response


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def message_delete(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Delete one message at once; for the script, return the notice that offers the undo.

    then=message: return to the page of the message, which offers it.
    """
    channel = channel_for(request.user, channel_id, ADD_PURGE)
    message_id, is_own_page = parse_snowflake(request.POST.get("message_id", "")), request.POST.get("then") == "message"
    purge = delete_message(
        channel.pk,
        message_id,
        moderator=actor_of(request),
        reason=gettext("Deleted on the page of the message") if is_own_page else gettext("Deleted in the timeline"),
    )
    enqueue_on_commit(purge.pk)
    if is_own_page:
        return redirect(f"{reverse('message', args=[channel_id, message_id])}?deleted_by={purge.pk}")
    if request.headers.get("HX-Request"):
        return render(request, "moderation/timeline/_deleted.html", {"purge": purge})
    return redirect("purge", purge.pk)


def _open(channel: Channel, position: Position) -> tuple[Timeline, Position, str]:
    """Return the page at a position, the position that it covers, and a notice if that differs from the request."""
    if position.at:
        return _open_at(channel, position.at)
    opened = open_timeline(channel.pk, before=position.before, after=position.after, around=position.around)
    if position.around is not None and all(m.message_id != position.around for m in opened.messages):
        return opened, position, gettext("This message is no longer here. These are the messages around its position.")
    return opened, position, ""


def _open_at(channel: Channel, at: str) -> tuple[Timeline, Position, str]:
    # A refusal repeats the time as the field shows it.
    start = first_id_from(parse_datetime(print_typed(at), now=timezone.localtime()))
    position = Position(after=start - 1)
    opened = open_timeline(channel.pk, after=position.after)
    if opened.messages or opened.page.newer is not None:
        return opened, position, ""
    earlier = Position(before=start)
    notice = gettext("No messages on or after %(date)s. These are the ones before.") % {"date": format_datetime(start)}
    return open_timeline(channel.pk, before=start), earlier, notice


def _roles_in(channel: Channel, opened: Timeline) -> dict[int, MemberRole]:
    return highest_roles(channel.guild_id, {message.author_id for message in opened.messages})


def _messages_context(
    request: HttpRequest, channel: Channel, opened: Timeline, gaps: Mapping[int | None, Sequence[GapLine]] | None = None
) -> dict[str, Any]:
    """Return the context of messages in their channel, with the names of what they mention."""
    return {
        "channel": channel,
        "rows": lay_out(opened, gaps, roles=_roles_in(channel, opened)),
        "users": opened.users,
        "mentioned": name_mentioned(request.user, opened.with_quoted, channels=[channel]),
        "may_purge": may_in(request.user, ADD_PURGE, channel),
    }


def _rows_context(request: HttpRequest, channel: Channel, opened: Timeline, position: Position) -> dict[str, Any]:
    """Return the context of `_rows.html`: rows, cursors, and the gaps that purges left in between."""
    page = opened.page
    after = position.after if position.after is not None else (MIN_ID if page.older is None else None)
    before = position.before if position.before is not None else (MAX_ID if page.newer is None else None)
    ids = [message.message_id for message in opened.messages]
    gaps = collapse_gaps(find_gaps(request.user, channel.pk, ids, after=after, before=before))
    return {
        **_messages_context(request, channel, opened, gaps),
        "gaps_below": gaps.get(None, ()),
        "older": page.older,
        "newer": page.newer,
        "searched_back_to": page.searched_back_to,
        "hidden": page.hidden,
        "focus": position.around,
    }
