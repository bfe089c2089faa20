"""Context of the approval of a purge above a limit."""

from __future__ import annotations

from dataclasses import dataclass

from moderation.domain.states import ApprovalDecision, PurgeState
from moderation.models import Purge, PurgeApproval
from moderation.operations.access.staff_names import mark_shared_names
from moderation.operations.access.visibility import ADD_PURGE, VIEW_PURGES, Actor, may_over_visible, name_of
from moderation.operations.purging.approvals import last_decided, may_decide
from moderation.operations.purging.limits import approval_needed
from moderation.presentation.texts import translate


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """A request for approval, or its outcome.

    may_confirm: the viewer may confirm the purge, or request the approval. needed: why they need one, or "". request:
    the one that waits. is_mine: the viewer made it. last: the last one that was rejected, or that started the purge.
    """

    may_confirm: bool = False
    may_decide: bool = False
    needed: str = ""
    request: PurgeApproval | None = None
    is_mine: bool = False
    last: PurgeApproval | None = None

    @property
    def decider(self) -> str:
        """Name of the account that decided the last one."""
        return name_of(self.last.decided_by) if self.last and self.last.decided_by else ""

    @property
    def was_rejected(self) -> bool:
        """True if the last request was rejected."""
        return self.last is not None and self.last.decision == ApprovalDecision.REJECTED


def describe_approval(user: Actor, purge: Purge, request: PurgeApproval | None) -> ApprovalView:
    """Return what the page shows to this user. request: the one that waits, if any."""
    if purge.state != PurgeState.READY:
        return ApprovalView(last=last_decided(purge) if purge.confirmed_at else None)
    may_purge = may_over_visible(user, ADD_PURGE, purge)
    if request is not None:
        # Who decides must know whose request it is.
        mark_shared_names(user, (request.requested_by,), right=VIEW_PURGES)
        is_mine = request.requested_by_id == user.pk
        return ApprovalView(request=request, is_mine=is_mine, may_decide=not is_mine and may_decide(user, purge))
    needed = approval_needed(purge, user) if may_purge else None
    return ApprovalView(may_confirm=may_purge, needed=translate(needed) if needed else "", last=last_decided(purge))
