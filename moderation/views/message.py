"""A message: its status, its context, its history, and the way to restore it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_safe

from chatstore.domain.snowflakes import MAX_ID, MIN_ID, time_of
from chatstore.models.users import User
from chatstore.operations.gateway.timeline import name_users, open_timeline
from moderation.domain.outcomes import PurgeOutcome, RestoreOutcome
from moderation.domain.states import ErasureDecision, PurgeState
from moderation.forms import read_cursor
from moderation.models import Erasure
from moderation.operations.access.reads import record_message_read
from moderation.operations.access.staff_names import distinct_name_of, mark_shared_names
from moderation.operations.access.visibility import ADD_PURGE, VIEW_PURGES, Actor, may_in
from moderation.operations.lookup.gaps import find_gaps
from moderation.operations.lookup.mentioned import name_mentioned
from moderation.operations.lookup.message_history import (
    MessageHistory,
    MessageStatus,
    history_of_message,
    locate,
    quarantined_copy,
)
from moderation.operations.lookup.purge_index import PurgePart
from moderation.operations.undo.requests import undo_period_of
from moderation.views.rows import MessageRow, collapse_gaps, lay_out

AROUND = 11
"""Messages shown in context, including the message itself."""

_CHIPS: dict[MessageStatus, tuple[str, Promise]] = {
    MessageStatus.LIVE: ("done", pgettext_lazy("status of a message", "in the channel")),
    MessageStatus.DELETED: ("deleted", pgettext_lazy("status of a message", "deleted")),
    MessageStatus.WITHDRAWN: ("", pgettext_lazy("status of a message", "deleted by its author")),
    MessageStatus.GONE: ("", pgettext_lazy("status of a message", "gone")),
    MessageStatus.NEVER_SEEN: ("", pgettext_lazy("status of a message", "never seen")),
}
_ERASED = "", pgettext_lazy("status of a message", "permanently deleted")
_BEING_ERASED = "busy", pgettext_lazy("status of a message", "being permanently deleted")
_PURGE_OUTCOMES: dict[PurgeOutcome, Promise] = {
    PurgeOutcome.WAITING: gettext_lazy("will delete this message"),
    PurgeOutcome.DELETED: gettext_lazy("deleted this message"),
    PurgeOutcome.ALREADY_GONE: gettext_lazy("the message was already gone"),
    PurgeOutcome.FAILED: gettext_lazy("could not delete this message"),
    PurgeOutcome.HELD: gettext_lazy("kept this message because of a hold"),
    PurgeOutcome.LEFT: gettext_lazy("cancelled before it reached this message"),
}
_RESTORE_OUTCOMES: dict[RestoreOutcome, Promise] = {
    RestoreOutcome.IN_PROGRESS: gettext_lazy("is restoring this message"),
    RestoreOutcome.RESTORED: gettext_lazy("restored this message"),
    RestoreOutcome.WITHDRAWN: gettext_lazy("not restored: its author had deleted this message"),
    RestoreOutcome.STILL_PURGED: gettext_lazy("not restored: another purge deleted this message too"),
    RestoreOutcome.ALREADY_LIVE: gettext_lazy("the message was already live"),
    RestoreOutcome.LEFT_OUT: gettext_lazy("not restored: already live, or deleted by another purge too"),
    RestoreOutcome.NO_COPY: gettext_lazy("could not restore this message: no copy is left"),
    RestoreOutcome.FAILED: gettext_lazy("could not restore this message: try again"),
}


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def message(request: HttpRequest, channel_id: int, message_id: int) -> HttpResponse:
    """Show a message of a channel and its history; 404 with nearby messages if it was never seen."""
    history = history_of_message(request.user, channel_id, message_id)
    context = _describe(request, history)
    status = 404 if history.status is MessageStatus.NEVER_SEEN else 200
    return render(request, "moderation/message/message.html", context, status=status)


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def message_anywhere(request: HttpRequest, message_id: int) -> HttpResponse:
    """Redirect a bare ID to the message; 404 with the extent of the search if no channel knows it."""
    located = locate(request.user, message_id)
    if located.channel_id is not None:
        return redirect("message", located.channel_id, message_id)
    context = {"located": located, "message_id": message_id, "posted_at": time_of(message_id)}
    return render(request, "moderation/message/not_found.html", context, status=404)


@dataclass(frozen=True, slots=True)
class HistoryUndo:
    """A line of the history: an undo, and its outcome for the message."""

    who: str
    reason: str
    text: str | Promise
    at: Any


@dataclass(frozen=True, slots=True)
class HistoryPurge:
    """A purge in the history of a message."""

    part: PurgePart
    who: str
    text: str | Promise
    undo_results: Sequence[HistoryUndo]


def _describe(request: HttpRequest, history: MessageHistory) -> dict[str, Any]:
    user = request.user
    undoing = any(
        result.outcome is RestoreOutcome.IN_PROGRESS for part in history.parts for result in part.undo_results
    )
    deletion, may_purge = history.deletion, may_in(user, ADD_PURGE, history.channel)
    deleted_by = read_cursor(request.GET, "deleted_by")
    deleting = any(part.outcome is PurgeOutcome.WAITING and part.purge.pk == deleted_by for part in history.parts)
    around = describe_context(user, history)
    mark_shared_names(user, _moderators_of(history), right=VIEW_PURGES)
    written: MessageRow | None = around["row"]
    return {
        "channel": history.channel,
        "message_history": history,
        "posted_at": time_of(history.message_id),
        "status": history.status.value,
        "chip": describe_status(history),
        "deletion": deletion,
        "deleted_by": distinct_name_of(deletion.purge.moderator) if deletion else "",
        "history": [_describe_purge(part) for part in history.parts],
        "undoing": undoing,
        "deleting": deleting,
        "just_deleted": deletion.purge if deletion and deletion.purge.pk == deleted_by and may_purge else None,
        "may_delete": may_purge and history.live is not None and not _will_be_deleted(history),
        "erased": approved_erasure(history),
        "undo": _offer_restore(history) if may_purge and not undoing else None,
        "author": around["users"].get(written.writer.user_id) if written and not written.writer.is_webhook else None,
        **around,
    }


def describe_status(history: MessageHistory) -> tuple[str, str | Promise]:
    """Return the class and the label of the chip with a message's status."""
    if history.erased:
        # The files of some nodes contain the copy until then.
        is_off_disk = history.erased.purge.state == PurgeState.ERASED
        return _ERASED if is_off_disk else _BEING_ERASED
    if history.status is MessageStatus.LIVE and _will_be_deleted(history):
        return "to-delete", pgettext_lazy("status of a message", "to be deleted")
    return _CHIPS[history.status]


def _will_be_deleted(history: MessageHistory) -> bool:
    """Return whether a purge that the viewer may see is about to delete the message."""
    return any(part.outcome is PurgeOutcome.WAITING and part.is_visible for part in history.parts)


def describe_context(user: Actor, history: MessageHistory, *, around: int = AROUND) -> dict[str, Any]:
    """Return the rows before it, its own if it may be read, those after it, and the names of what they mention."""
    channel_id, message_id = history.channel.pk, history.message_id
    # A message that its author withdrew is not shown, even if a purge kept a copy.
    shows_copy = history.live is None and not history.is_withdrawn and may_in(user, VIEW_PURGES, history.channel)
    content = history.live or (quarantined_copy(user, history) if shows_copy else None)
    if content is not None and history.live is None:
        record_message_read(user, channel_id=channel_id, message_id=message_id, author_id=content.author_id)
    opened = open_timeline(channel_id, around=message_id, limit=around)
    others = [other for other in opened.messages if other.message_id != message_id]
    shown = sorted([*others, *([content] if content else [])], key=lambda one: one.message_id)
    users = {**opened.users, **(name_users([content]) if content else {})}
    gaps = collapse_gaps(
        find_gaps(
            user,
            channel_id,
            [one.message_id for one in shown],
            after=MIN_ID if opened.page.older is None else None,
            before=MAX_ID if opened.page.newer is None else None,
        )
    )
    opened = replace(opened, messages=shown, users=users)
    rows = lay_out(opened, gaps)
    # The message has a frame of its own, so no run of messages continues across it.
    own = next((row for row in rows if row.message.message_id == message_id), None)
    before = [row for row in rows if row.message.message_id < message_id]
    after = [row for row in rows if row.message.message_id > message_id]
    own_day = own.day if own else None
    if own is None and history.status is not MessageStatus.NEVER_SEEN:
        # A note in its place belongs to its day too.
        day = _day_of(time_of(message_id))
        own_day = None if before and _day_of(before[-1].message.posted_at) == day else day
        if after and after[0].day == day:
            after[0] = replace(after[0], day=None)
    return {
        "users": users,
        "mentioned": name_mentioned(user, opened.with_quoted, channels=[history.channel]),
        "rows_before": before,
        "above_row": own,
        "own_day": own_day,
        "row": replace(own, continued=False, day=None, gaps=()) if own else None,
        "gaps_below": gaps.get(None, ()),
        "rows_after": [replace(row, continued=row.continued and row is not after[0]) for row in after],
    }


def _day_of(time: dt.datetime) -> dt.date:
    return timezone.localtime(time).date()


@dataclass(frozen=True, slots=True)
class RestoreOffer:
    """The purge whose undo restores the message, its deadline, and the other purges that deleted it."""

    part: PurgePart
    who: str
    until: Any
    others: Sequence[PurgePart]


def approved_erasure(history: MessageHistory) -> Erasure | None:
    """Return the approved erasure of its saved copy, if there is one."""
    if history.erased is None:
        return None
    return history.erased.purge.erasures.select_related("requested_by", "decided_by").get(
        decision=ErasureDecision.APPROVED
    )


def _moderators_of(history: MessageHistory) -> list[User]:
    """Return who deleted and who restored the message, each account as often as it is shown."""
    undos = [result.undo for part in history.parts for result in part.undo_results if result.undo]
    return [part.purge.moderator for part in history.parts] + [undo.moderator for undo in undos]


def _offer_restore(history: MessageHistory) -> RestoreOffer | None:
    offered = history.undoable_parts
    if not offered or history.is_past_undo:
        return None
    first = offered[0]
    others = [part for part in history.parts_in_effect if part is not first]
    until = undo_period_of(first.purge).shown_until(timezone.now())
    return RestoreOffer(first, distinct_name_of(first.purge.moderator), until, others)


def _describe_purge(part: PurgePart) -> HistoryPurge:
    undo_results = [
        HistoryUndo(
            who=distinct_name_of(result.undo.moderator) if result.undo else "",
            reason=result.undo.reason if result.undo and part.is_visible else "",
            text=_RESTORE_OUTCOMES[result.outcome] if result.undo else gettext("Restored by an import"),
            at=result.at or (result.undo.requested_at if result.undo else None),
        )
        for result in part.undo_results
    ]
    return HistoryPurge(part, distinct_name_of(part.purge.moderator), _PURGE_OUTCOMES[part.outcome], undo_results)
