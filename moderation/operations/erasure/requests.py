"""Erasing what a purge keeps, as people see it: one asks for it, another one approves.

- Nobody erases alone, and nothing that a hold covers is erased: that is asked when somebody asks, when
  somebody approves, and once more before the first delete (`wiping`), in turns with whoever places a hold.
- From the approval on no undo is offered. Until something was deleted a hold still stops it, and the purge
  is again what it was.
- An undo takes each message from whichever purge keeps it. So what another purge would need for its own
  undo is not erased before that one is taken back, erased, or too old.
- A wish lapses after a day, and when the purge was taken back or tried again since: it was about something else.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from chatstore.domain.errors import BadInput
from chatstore.models.functions import ClockTimestamp
from moderation.domain.states import CAN_BE_ERASED, ErasureAnswer, PurgeState
from moderation.models import Erasure, Purge, Undo
from moderation.operations.access.audit import record_act, save_with_next_id
from moderation.operations.access.visibility import Actor, purge_for, require, visible_purges
from moderation.operations.holds import hold_over_purge, take_turns_with_holds
from moderation.operations.purging.lifecycle import REASON_AT_MOST
from moderation.operations.selection.summary import ListedPurge, describe_purges
from moderation.operations.steps.claiming import brief_transaction, lock_purge
from moderation.operations.steps.shared_copies import shared_copies
from moderation.operations.undo.requests import undo_until

ERASE = "moderation.erase_purge"

LAPSES_AFTER = dt.timedelta(hours=24)


def ask_erase(purge_id: int, *, moderator: User, reason: str) -> Erasure:
    """Asks for what a purge keeps to be erased; somebody else has to approve it within a day.

    Raises `Forbidden`, `NotFound`; `BadInput` without a reason, for what cannot be erased now and why,
    and while somebody else's wish stands.
    """
    require(moderator, ERASE)
    reason = reason.strip()
    if not reason:
        raise BadInput("A reason is needed: it is what the second person decides by.")
    if len(reason) > REASON_AT_MOST:
        raise BadInput(f"The reason is longer than {REASON_AT_MOST:,} characters.")
    also_kept = _also_kept(purge_for(moderator, purge_id))
    with brief_transaction():
        purge = lock_purge(purge_id)
        check_erasable(purge)
        if open_request(purge) is not None:
            raise BadInput("Somebody has asked for that already. It waits for a second person.")
        erasure = Erasure(purge=purge, asked_by=moderator, reason=reason, also_kept=also_kept)
        save_with_next_id(erasure)
        record_act("erase_asked", actor=moderator, purge=purge, details={"erasure": str(erasure.pk), "reason": reason})
    erasure.refresh_from_db()
    return erasure


def approve_erase(purge_id: int, erasure_id: int, *, moderator: User) -> Erasure:
    """The second person's yes: → *erasing*. Approving twice changes nothing. Who calls it enqueues, after commit.

    Raises `Forbidden`, `NotFound`; `BadInput` for whoever asked, for a wish that was answered or has
    lapsed, and as `ask_erase`.
    """
    require(moderator, ERASE)
    also_kept = _also_kept(purge_for(moderator, purge_id))
    with brief_transaction():
        purge = lock_purge(purge_id)
        erasure = _request(purge, erasure_id)
        if erasure.asked_by_id == moderator.pk:
            raise BadInput("You asked for it yourself. Somebody else has to approve it.")
        if erasure.answer == ErasureAnswer.APPROVED:
            return erasure
        _check_open(purge, erasure)
        check_erasable(purge)
        _answer(erasure, ErasureAnswer.APPROVED, moderator, was=purge.state, also_kept=also_kept)
        Purge.objects.filter(id=purge_id).update(state=PurgeState.ERASING, wait_reason="", wait_until=None)
        details = {"erasure": str(erasure.pk), "asked_by": erasure.asked_by.get_username(), "was": purge.state}
        record_act("erase_approved", actor=moderator, purge=purge, details=details)
    return erasure


def refuse_erase(purge_id: int, erasure_id: int, *, moderator: User) -> Erasure:
    """A no, also by whoever asked. Raises `Forbidden`, `NotFound`; `BadInput` for a wish that does not stand."""
    require(moderator, ERASE)
    with brief_transaction():
        purge_for(moderator, purge_id)
        purge = lock_purge(purge_id)
        erasure = _request(purge, erasure_id)
        _check_open(purge, erasure)
        _answer(erasure, ErasureAnswer.REFUSED, moderator)
        record_act("erase_refused", actor=moderator, purge=purge, details={"erasure": str(erasure.pk)})
    return erasure


def check_erasable(purge: Purge) -> None:
    """Raises `BadInput` when what the purge keeps may not be erased now. The caller's transaction holds its row."""
    if why_not := why_not_erase(purge):
        raise BadInput(why_not)
    take_turns_with_holds()
    if hold := hold_over_purge(purge):
        raise BadInput(say_held(hold.reason))


def why_not_erase(purge: Purge) -> str:
    """Why what a purge keeps cannot be erased as it stands, holds aside; "" when it can be."""
    if purge.state == PurgeState.UNDO_EXPIRED:
        return "What it kept goes by itself, a day after it could last be taken back."
    if purge.state not in CAN_BE_ERASED:
        return f"What a purge keeps cannot be erased while it is {purge.get_state_display()}."
    return "It keeps nothing: nothing was removed." if undo_until(purge) is None else ""


def say_held(reason: str) -> str:
    """Why a hold is in the way, in two sentences."""
    return f"A hold covers some of these messages (“{reason}”). Nothing of them is erased until it is lifted."


def open_request(purge: Purge) -> Erasure | None:
    """The wish that waits for a second person; None where there is none, or it has lapsed."""
    return _open_requests().filter(purge=purge).select_related("asked_by").first()


def requests_for(user: Actor) -> list[tuple[ListedPurge, Erasure]]:
    """The wishes that a user may answer, the oldest first: not his own; nothing without the right."""
    if not user.has_perm(ERASE):
        return []
    waiting = _open_requests().filter(purge__in=visible_purges(user)).exclude(asked_by_id=user.pk).order_by("id")
    found: Sequence[Erasure] = list(waiting.select_related("asked_by", "purge__moderator"))
    return list(zip(describe_purges(user, [erasure.purge for erasure in found]), found, strict=True))


def _open_requests() -> QuerySet[Erasure]:
    undone_since = Undo.objects.filter(purge_id=OuterRef("purge_id"), asked_at__gte=OuterRef("asked_at"))
    return Erasure.objects.filter(
        ~Exists(undone_since),
        ~Q(purge__finished_at__gt=F("asked_at")),
        answer=ErasureAnswer.NONE,
        asked_at__gt=ClockTimestamp() - LAPSES_AFTER,
        purge__state__in=CAN_BE_ERASED,
    )


def _also_kept(purge: Purge) -> dict[str, int]:
    """How many of its messages other purges keep too, by their ids."""
    return {str(other): count for other, count in shared_copies(purge).items()}


def _request(purge: Purge, erasure_id: int) -> Erasure:
    erasure = purge.erasures.filter(pk=erasure_id).select_related("asked_by").first()
    if erasure is None:
        raise BadInput("Nobody has asked for that.")
    return erasure


def _check_open(purge: Purge, erasure: Erasure) -> None:
    current = open_request(purge)
    if current is None or current.pk != erasure.pk:
        raise BadInput("This wish was answered already, or has lapsed. Look at the purge again.")


def _answer(erasure: Erasure, answer: ErasureAnswer, moderator: User, **stored: object) -> None:
    Erasure.objects.filter(pk=erasure.pk).update(
        answer=answer, answered_by=moderator, answered_at=ClockTimestamp(), **stored
    )
    erasure.refresh_from_db()
