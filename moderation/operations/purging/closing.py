"""Closing the request for approval of a purge, in the transaction of the act that leaves nothing to decide."""

from __future__ import annotations

from chatstore.domain.texts import Text, as_json
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from moderation.domain.states import ApprovalDecision
from moderation.models import Purge
from moderation.operations.access.audit import record_action


def close_approval(purge: Purge, *, actor: User, cause: Text) -> None:
    """Close the undecided request of a purge, whose row is locked; nothing if it has none. cause: for the audit log."""
    undecided = purge.approvals.undecided().select_related("requested_by")
    approval = undecided.first()
    if approval is None:
        return
    purge.approvals.filter(pk=approval.pk).update(decision=ApprovalDecision.CLOSED, decided_at=ClockTimestamp())
    details = {
        "approval": str(approval.pk),
        "requested_by": approval.requested_by.get_username(),
        "cause": as_json(cause),
    }
    record_action("approval_closed", actor=actor, purge=purge, details=details)
