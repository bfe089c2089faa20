"""Raid mode: the accounts of a raid and their messages, one click from the preview of deleting them."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from chatstore.domain.errors import BadInput
from chatstore.domain.milliseconds import DAY_MS, MINUTE_MS, time_at
from chatstore.domain.snowflakes import MAX_ID, ms_of, parse_snowflake
from moderation.domain.states import PurgeState
from moderation.forms import identify_form
from moderation.operations.purging.lifecycle import AlreadyDrafted, draft_purge
from moderation.operations.purging.listing import list_under_way
from moderation.operations.raids.detection import dismiss_raid
from moderation.operations.raids.review import review_raid, select_raid
from moderation.operations.raids.settings import may_set_raids
from moderation.tasks import enqueue_scan_on_commit
from moderation.views.raid_page import describe_raid
from moderation.views.session import actor_of

_LEAVING_MESSAGES = frozenset({PurgeState.CANCELLING, PurgeState.UNDOING})
"""States of a purge under way whose messages stay in the channel, or are restored there. Others may delete them."""

LAST_MS = ms_of(MAX_ID) - 2 * DAY_MS
"""Time after which no id of a message is left, less what time zones may add."""


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required("moderation.add_purge", raise_exception=True)
def raid(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Show what happened in a channel. Posted, it drafts a purge of what the selected accounts wrote there.

    `show` posts the form for another time, `select` for other accounts.
    """
    if request.method != "POST" or not request.POST.keys().isdisjoint({"show", "select"}):
        return _show(request, channel_id)
    moderator = actor_of(request)
    try:
        accounts = [parse_snowflake(text) for text in request.POST.getlist("account")]
        start_ms, end_ms = _read_minute(request.POST, "start"), _read_minute(request.POST, "end")
        if not accounts or start_ms is None:
            raise BadInput(gettext("No accounts are selected. Select at least one."))
        selection = select_raid(channel_id, accounts, start_ms=start_ms, end_ms=end_ms)
        purge = draft_purge(moderator=moderator, selection=selection, sent_form=identify_form(request))
    except AlreadyDrafted as earlier:
        return redirect("purge", earlier.purge_id)
    except BadInput as error:
        return _show(request, channel_id, error_message=error.text)
    enqueue_scan_on_commit(purge.pk)
    return redirect("purge", purge.pk)


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def raid_dismiss(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Close the report of a raid."""
    dismiss_raid(channel_id, actor=actor_of(request))
    return redirect("timeline", channel_id)


def _read_minute(fields: QueryDict, name: str) -> int | None:
    """Return a time in Unix milliseconds, or None. Raises `BadInput` for anything but whole minutes."""
    text = fields.get(name, "").strip()
    if not text:
        return None
    minute = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None
    if minute is None or minute * MINUTE_MS > LAST_MS:
        raise BadInput(gettext("The time range is not valid. Choose it again."))
    return minute * MINUTE_MS


def _show(request: HttpRequest, channel_id: int, *, error_message: str = "") -> HttpResponse:
    fields = request.POST if request.method == "POST" else request.GET
    start_ms, end_ms = None, None
    try:
        if fields.get("show") != "all":
            start_ms, end_ms = _read_minute(fields, "start"), _read_minute(fields, "end")
    except BadInput as error:
        error_message = error_message or error.text
    review = review_raid(request.user, channel_id, start_ms=start_ms, end_ms=end_ms)
    under_way = list_under_way(request.user, channel_id, since=time_at(review.raid_start_ms))
    including = [one.purge for one in under_way if one.purge.state not in _LEAVING_MESSAGES]
    context = {
        "error_message": error_message,
        "may_set_raids": may_set_raids(request.user, review.channel.guild_id),
        "under_way": under_way,
        # Its notice would repeat the heading.
        "hides_notice_of": channel_id,
        **describe_raid(request.user, review, fields, including),
    }
    return render(request, "moderation/raids/raid.html", context, status=400 if error_message else 200)
