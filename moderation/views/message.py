"""One message: what became of it, in its place, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
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
"""Messages shown in context, the one in question among them."""

_CHIPS = {
    Verdict.LIVE: ("done", "there"),
    Verdict.REMOVED: ("", "removed"),
    Verdict.WITHDRAWN: ("", "withdrawn"),
    Verdict.GONE: ("", "gone"),
    Verdict.NEVER_SEEN: ("", "never seen"),
}
_FATES = {
    Fate.WAITING: "is to remove it",
    Fate.DELETED: "removed it",
    Fate.ALREADY_GONE: "found it gone already",
    Fate.FAILED: "could not remove it",
    Fate.HELD: "left it there, since it is held",
    Fate.LEFT: "was stopped before it came to it",
}
_COMEBACKS = {
    Comeback.ON_ITS_WAY: "is bringing it back",
    Comeback.RESTORED: "brought it back",
    Comeback.WITHDRAWN: "left it away: its author had withdrawn it",
    Comeback.STILL_PURGED: "left it away: another purge stood for it",
    Comeback.ALREADY_LIVE: "found it there already",
    Comeback.LEFT_OUT: "had nothing to bring back: it was there already, or another purge stood for it",
    Comeback.NOWHERE_KEPT: "could not bring it back: it is nowhere kept",
    Comeback.FAILED: "could not bring it back; try again",
}


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def message(request: HttpRequest, channel_id: int, message_id: int) -> HttpResponse:
    """What became of one message of a channel; 404, with what stands around, when it was never seen."""
    story = story_of(request.user, channel_id, message_id)
    context = _describe(request, story)
    status = 404 if story.verdict is Verdict.NEVER_SEEN else 200
    return render(request, "message.html", context, status=status)


@require_safe
@permission_required("chatstore.view_channel", raise_exception=True)
def message_anywhere(request: HttpRequest, message_id: int) -> HttpResponse:
    """A bare id: to its channel's page of it; 404, saying how far one looked, when no channel knows it."""
    located = locate(request.user, message_id)
    if located.channel_id is not None:
        return redirect("message", located.channel_id, message_id)
    context = {"located": located, "message_id": message_id, "posted_at": time_of(message_id)}
    return render(request, "message_nowhere.html", context, status=404)


@require_POST
@permission_required("moderation.add_purge", raise_exception=True)
def message_undo(request: HttpRequest, channel_id: int, message_id: int) -> HttpResponse:
    """Brings this one message back from the purge that the form names."""
    purge_id = parse_snowflake(request.POST.get("purge", ""))
    ask_undo_of_message(purge_id, moderator=actor_of(request), channel_id=channel_id, message_id=message_id)
    ring_on_commit(purge_id)
    return redirect("message", channel_id, message_id)


@dataclass(frozen=True, slots=True)
class ToldReturn:
    """A line of the history: who took it back, and what came of it."""

    who: str
    words: str
    at: Any


@dataclass(frozen=True, slots=True)
class ToldPart:
    """A purge in the history of a message."""

    part: PurgePart
    who: str
    words: str
    returns: Sequence[ToldReturn]


def _describe(request: HttpRequest, story: Story) -> dict[str, Any]:
    user = request.user
    # What its author withdrew is nobody's to read any more, even where a purge kept it.
    shows_kept = story.live is None and not story.is_withdrawn and user.has_perm("moderation.view_purge")
    said = story.live or (kept_copy(user, story) if shows_kept else None)
    undoing = any(told.comeback is Comeback.ON_ITS_WAY for part in story.parts for told in part.returns)
    return {
        "channel": story.channel,
        "story": story,
        "posted_at": time_of(story.message_id),
        "verdict": story.verdict.value,
        "chip": ("", "erased") if story.erased else _CHIPS[story.verdict],
        "removal": story.removal,
        "remover": name_of(story.removal.purge.moderator) if story.removal else "",
        "history": [_tell(part) for part in story.parts],
        "undoing": undoing,
        "erased": _tell_erased(story),
        "undo": _offer_undo(story) if user.has_perm("moderation.add_purge") and not undoing else None,
        **_in_its_place(story, said),
    }


def _in_its_place(story: Story, said: Message | None) -> dict[str, Any]:
    """The rows before it, its own where it may be read, those after it, and the users they name."""
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
    # The one in question stands in a frame of its own, so no run of messages reaches across it.
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
    """The purge that can give the message back, until when, and what stands in the way."""

    part: PurgePart
    who: str
    until: Any
    others: Sequence[PurgePart]


def _tell_erased(story: Story) -> Erasure | None:
    """Who had erased what was kept of it, and when."""
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
            words=_COMEBACKS[told.comeback] if told.undo else "An import put it back",
            at=told.at or (told.undo.asked_at if told.undo else None),
        )
        for told in part.returns
    ]
    return ToldPart(part, name_of(part.purge.moderator), _FATES[part.fate], returns)
