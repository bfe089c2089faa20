"""A message: its status, its context, its history, and the way to restore it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_POST, require_safe

from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, parse_snowflake, time_of
from chatstore.operations.gateway.timeline import name_users, open_timeline
from moderation.domain.outcomes import Comeback, Fate
from moderation.domain.states import ErasureAnswer
from moderation.models import Erasure
from moderation.operations.access.visibility import name_of
from moderation.operations.lookup.gaps import find_gaps
from moderation.operations.lookup.message_history import (
    Story,
    Verdict,
    ask_undo_of_message,
    kept_copy,
    locate,
    story_of,
)
from moderation.operations.lookup.purge_index import PurgePart
from moderation.operations.undo.requests import undo_until
from moderation.tasks import ring_on_commit
from moderation.views.rows import lay_out
from moderation.views.session import actor_of

AROUND = 11
"""Messages shown in context, including the message itself."""

_CHIPS: dict[Verdict, tuple[str, Promise]] = {
    Verdict.LIVE: ("done", pgettext_lazy("status of a message", "in the channel")),
    Verdict.REMOVED: ("", pgettext_lazy("status of a message", "deleted")),
    Verdict.WITHDRAWN: ("", pgettext_lazy("status of a message", "withdrawn")),
    Verdict.GONE: ("", pgettext_lazy("status of a message", "gone")),
    Verdict.NEVER_SEEN: ("", pgettext_lazy("status of a message", "never seen")),
}
_FATES: dict[Fate, Promise] = {
    Fate.WAITING: gettext_lazy("will delete this message"),
    Fate.DELETED: gettext_lazy("deleted this message"),
    Fate.ALREADY_GONE: gettext_lazy("the message was already gone"),
    Fate.FAILED: gettext_lazy("could not delete this message"),
    Fate.HELD: gettext_lazy("kept this message because of a hold"),
    Fate.LEFT: gettext_lazy("cancelled before it reached this message"),
}
_COMEBACKS: dict[Comeback, Promise] = {
    Comeback.ON_ITS_WAY: gettext_lazy("is restoring this message"),
    Comeback.RESTORED: gettext_lazy("restored this message"),
    Comeback.WITHDRAWN: gettext_lazy("not restored: the author had withdrawn this message"),
    Comeback.STILL_PURGED: gettext_lazy("not restored: another purge deleted this message too"),
    Comeback.ALREADY_LIVE: gettext_lazy("the message was already present"),
    Comeback.LEFT_OUT: gettext_lazy("not restored: already present, or deleted by another purge too"),
    Comeback.NOWHERE_KEPT: gettext_lazy("could not restore this message: no copy is left"),
    Comeback.FAILED: gettext_lazy("could not restore this message: try again"),
}


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def message(request: HttpRequest, channel_id: int, message_id: int) -> HttpResponse:
    """Show a message of a channel and its history; 404 with nearby messages if it was never seen."""
    story = story_of(request.user, channel_id, message_id)
    context = _describe(request, story)
    status = 404 if story.verdict is Verdict.NEVER_SEEN else 200
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


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def message_undo(request: HttpRequest, channel_id: int, message_id: int) -> HttpResponse:
    """Restore this one message from the purge that the form names."""
    purge_id = parse_snowflake(request.POST.get("purge", ""))
    ask_undo_of_message(purge_id, moderator=actor_of(request), channel_id=channel_id, message_id=message_id)
    ring_on_commit(purge_id)
    return redirect("message", channel_id, message_id)


@dataclass(frozen=True, slots=True)
class ToldReturn:
    """A line of the history: an undo, and its outcome for the message."""

    who: str
    words: str | Promise
    at: Any


@dataclass(frozen=True, slots=True)
class ToldPart:
    """A purge in the history of a message."""

    part: PurgePart
    who: str
    words: str | Promise
    returns: Sequence[ToldReturn]


def _describe(request: HttpRequest, story: Story) -> dict[str, Any]:
    user = request.user
    # A message that its author withdrew is not shown, even if a purge kept a copy.
    shows_kept = story.live is None and not story.is_withdrawn and user.has_perm("moderation.view_purge")
    said = story.live or (kept_copy(user, story) if shows_kept else None)
    undoing = any(told.comeback is Comeback.ON_ITS_WAY for part in story.parts for told in part.returns)
    return {
        "channel": story.channel,
        "story": story,
        "posted_at": time_of(story.message_id),
        "verdict": story.verdict.value,
        "chip": ("", pgettext_lazy("status of a message", "erased")) if story.erased else _CHIPS[story.verdict],
        "removal": story.removal,
        "remover": name_of(story.removal.purge.moderator) if story.removal else "",
        "history": [_tell(part) for part in story.parts],
        "undoing": undoing,
        "erased": _tell_erased(story),
        "undo": _offer_undo(story) if user.has_perm("moderation.add_purge") and not undoing else None,
        **_in_its_place(story, said),
    }


def _in_its_place(story: Story, said: Message | None) -> dict[str, Any]:
    """Return the rows before it, its own if it may be read, those after it, and the users they mention."""
    channel_id, message_id = story.channel.pk, story.message_id
    opened = open_timeline(channel_id, around=message_id, limit=AROUND)
    others = [other for other in opened.messages if other.message_id != message_id]
    shown = sorted([*others, *([said] if said else [])], key=lambda one: one.message_id)
    users = {**opened.users, **(name_users([said]) if said else {})}
    gaps = find_gaps(
        channel_id,
        [one.message_id for one in shown],
        after=MIN_ID if opened.page.older is None else None,
        before=MAX_ID if opened.page.newer is None else None,
    )
    rows = lay_out(replace(opened, messages=shown, users=users), gaps)
    # The message has a frame of its own, so no run of messages continues across it.
    own = next((row for row in rows if row.message.message_id == message_id), None)
    after = [row for row in rows if row.message.message_id > message_id]
    return {
        "users": users,
        "rows_before": [row for row in rows if row.message.message_id < message_id],
        "above_row": own,
        "row": replace(own, continued=False, day=None, gaps=()) if own else None,
        "gaps_below": gaps.get(None, ()),
        "rows_after": [replace(row, continued=row.continued and row is not after[0]) for row in after],
    }


@dataclass(frozen=True, slots=True)
class UndoOffer:
    """The purge whose undo restores the message, its deadline, and the other purges that deleted it."""

    part: PurgePart
    who: str
    until: Any
    others: Sequence[PurgePart]


def _tell_erased(story: Story) -> Erasure | None:
    """Return the approved erasure of its saved copy, if there is one."""
    if story.erased is None:
        return None
    return story.erased.purge.erasures.select_related("asked_by", "answered_by").get(answer=ErasureAnswer.APPROVED)


def _offer_undo(story: Story) -> UndoOffer | None:
    offered = story.may_undo
    if not offered or story.is_too_late:
        return None
    first = offered[0]
    others = [part for part in story.standing if part is not first]
    return UndoOffer(first, name_of(first.purge.moderator), undo_until(first.purge), others)


def _tell(part: PurgePart) -> ToldPart:
    returns = [
        ToldReturn(
            who=name_of(told.undo.moderator) if told.undo else "",
            words=_COMEBACKS[told.comeback] if told.undo else gettext("Restored by an import"),
            at=told.at or (told.undo.asked_at if told.undo else None),
        )
        for told in part.returns
    ]
    return ToldPart(part, name_of(part.purge.moderator), _FATES[part.fate], returns)
