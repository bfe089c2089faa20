"""Requests to erase the copies of a purge: one person requests it, another approves it.

- Erasing takes two people, and copies that a hold covers are never erased. Holds are checked at the request, at the
  approval, and once more before the first delete (`execution`), serialized with the placing of holds.
- From the approval on, no undo is offered. Until something was deleted, a hold still stops the erasure, and the purge
  returns to its previous state.
- An undo restores each message from any purge that has a copy. Copies that other purges need for their own undo
  are not erased before those purges are undone, erased, or expired.
- A request expires after a day, and when the purge is undone or retried in the meantime, because it then refers to
  something else.
"""

from __future__ import annotations

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from moderation.domain.state_labels import STATE_LABELS
from moderation.domain.states import CAN_BE_ERASED, ErasureDecision, PurgeState
from moderation.models import Erasure, Purge, Undo
from moderation.models.limits import REQUEST_LIFETIME
from moderation.operations.access.audit import record_action, save_with_next_id
from moderation.operations.access.reasons import check_reason
from moderation.operations.access.visibility import (
    Actor,
    may_over,
    may_over_matches,
    name_of,
    purge_for,
    require,
    require_over_matches,
    visible_purges,
)
from moderation.operations.holds import block_new_holds, hold_over_purge
from moderation.operations.steps.claiming import brief_transaction, lock_purge
from moderation.operations.steps.shared_copies import shared_copies
from moderation.operations.undo.requests import undo_until_without_holds

ERASE = "moderation.erase_purge"


def request_erasure(purge_id: int, *, moderator: User, reason: str) -> Erasure:
    """Request the erasure of a purge's copies; another person has to approve it within a day.

    Raises `Forbidden`, `NotFound`; `BadInput` without a reason, if the copies cannot be erased now, and if another
    request is open.
    """
    require(moderator, ERASE)
    reason = check_reason(reason, missing=_("Enter a reason. The approver will see it."))
    also_kept = _count_also_kept(purge_for(moderator, purge_id, ERASE))
    with brief_transaction():
        purge = lock_purge(purge_id)
        require_over_matches(moderator, ERASE, purge)
        check_erasable(purge)
        if open_request(purge) is not None:
            raise BadInput(_("Permanent deletion has already been requested. It is waiting for approval."))
        erasure = Erasure(purge=purge, requested_by=moderator, reason=reason, also_kept=also_kept)
        save_with_next_id(erasure)
        record_action(
            "erase_requested", actor=moderator, purge=purge, details={"erasure": str(erasure.pk), "reason": reason}
        )
    erasure.refresh_from_db()
    return erasure


def approve_erasure(purge_id: int, erasure_id: int, *, moderator: User) -> Erasure:
    """Approve a request: → *erasing*. Idempotent. The caller enqueues the work after the commit.

    Raises `Forbidden`, `NotFound`; `BadInput` for the requester, for a request that was decided or has expired, if the
    requester may not erase there any more, and as `request_erasure`.
    """
    require(moderator, ERASE)
    also_kept = _count_also_kept(purge_for(moderator, purge_id, ERASE))
    with brief_transaction():
        purge = lock_purge(purge_id)
        erasure = _request(purge, erasure_id)
        if erasure.requested_by_id == moderator.pk:
            raise BadInput(_("You cannot approve your own request. Ask another person to approve it."))
        if erasure.decision == ErasureDecision.APPROVED:
            return erasure
        _check_open(purge, erasure)
        require_over_matches(moderator, ERASE, purge)
        requester = erasure.requested_by
        is_allowed = may_over(requester, ERASE, purge) and may_over_matches(requester, ERASE, purge)
        if not requester.is_active or not is_allowed:
            # Otherwise one person alone would have decided.
            raise BadInput(_("%(name)s may not permanently delete these copies any more.", name=name_of(requester)))
        check_erasable(purge)
        _decide(erasure, ErasureDecision.APPROVED, moderator, previous_state=purge.state, also_kept=also_kept)
        Purge.objects.filter(id=purge_id).update(state=PurgeState.ERASING, wait_reason="", wait_until=None)
        details = {"erasure": str(erasure.pk), "requested_by": erasure.requested_by.get_username(), "was": purge.state}
        record_action("erase_approved", actor=moderator, purge=purge, details=details)
    return erasure


def reject_erasure(purge_id: int, erasure_id: int, *, moderator: User) -> Erasure:
    """Refuse or withdraw a request. Raises `Forbidden`, `NotFound`; `BadInput` for a request that is not open."""
    require(moderator, ERASE)
    with brief_transaction():
        purge_for(moderator, purge_id, ERASE)
        purge = lock_purge(purge_id)
        erasure = _request(purge, erasure_id)
        _check_open(purge, erasure)
        _decide(erasure, ErasureDecision.REJECTED, moderator)
        record_action("erase_rejected", actor=moderator, purge=purge, details={"erasure": str(erasure.pk)})
    return erasure


def check_erasable(purge: Purge) -> None:
    """Raise `BadInput` if the purge's copies cannot be erased now. The caller's transaction locks its row."""
    if reason_against := erasure_blocked_reason(purge):
        raise BadInput(reason_against)
    block_new_holds()
    if hold := hold_over_purge(purge):
        raise BadInput(describe_blocking_hold(hold.reason))


def erasure_blocked_reason(purge: Purge) -> str:
    """Return why a purge's copies cannot be erased in its state, holds aside; "" if they can."""
    if purge.state == PurgeState.UNDO_EXPIRED:
        return _("Its copies expire on their own, one day after the undo period.")
    if purge.state not in CAN_BE_ERASED:
        return _(
            "The copies of a purge cannot be permanently deleted in its present state: %(state)s.",
            state=STATE_LABELS[purge.state],
        )
    return _("There are no copies, because nothing was deleted.") if undo_until_without_holds(purge) is None else ""


def describe_blocking_hold(reason: str) -> str:
    """Describe the hold that prevents an erasure, in two sentences."""
    return _(
        "A hold covers some of these messages (“%(reason)s”). They cannot be permanently deleted until it is lifted.",
        reason=reason,
    )


def open_request(purge: Purge) -> Erasure | None:
    """Return the request that is waiting for approval; None if there is none or it has expired."""
    return _open_requests().filter(purge=purge).select_related("requested_by").first()


def is_open(request: Erasure) -> bool:
    """Return whether a request, as it was read, is the one that is waiting for approval."""
    return request.decision == ErasureDecision.NONE and _open_requests().filter(pk=request.pk).exists()


def open_requests(user: Actor) -> list[Erasure]:
    """Return the requests that a user may decide, oldest first, without their own; none without the permission."""
    if not user.has_perm(ERASE):
        return []
    waiting = (
        _open_requests().filter(purge__in=visible_purges(user, ERASE)).exclude(requested_by_id=user.pk).order_by("id")
    )
    return list(waiting.select_related("requested_by", "purge__moderator"))


def _open_requests() -> QuerySet[Erasure]:
    undone_since = Undo.objects.filter(purge_id=OuterRef("purge_id"), requested_at__gte=OuterRef("requested_at"))
    return Erasure.objects.filter(
        ~Exists(undone_since),
        ~Q(purge__finished_at__gt=F("requested_at")),
        decision=ErasureDecision.NONE,
        requested_at__gt=ClockTimestamp() - REQUEST_LIFETIME,
        purge__state__in=CAN_BE_ERASED,
    )


def _count_also_kept(purge: Purge) -> dict[str, int]:
    """Return the number of its messages that other purges have copies of too, by their ids."""
    return {str(other): count for other, count in shared_copies(purge).items()}


def _request(purge: Purge, erasure_id: int) -> Erasure:
    erasure = purge.erasures.filter(pk=erasure_id).select_related("requested_by").first()
    if erasure is None:
        raise BadInput(_("This request does not exist. Reload the page."))
    return erasure


def _check_open(purge: Purge, erasure: Erasure) -> None:
    current = open_request(purge)
    if current is None or current.pk != erasure.pk:
        raise BadInput(_("This request has already been decided or has expired. Reload the purge."))


def _decide(erasure: Erasure, decision: ErasureDecision, moderator: User, **stored: object) -> None:
    Erasure.objects.filter(pk=erasure.pk).update(
        decision=decision, decided_by=moderator, decided_at=ClockTimestamp(), **stored
    )
    erasure.refresh_from_db()
