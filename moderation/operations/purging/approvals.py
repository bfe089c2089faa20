"""Approvals of purges above a limit: their moderator requests one, and another person confirms the purge with it.

What is approved is the manifest hash: a preview that was changed since needs another request. A request ends after a
day, and its preview with it; confirming, changing or discarding the preview closes it (`closing.py`). `PurgeApproval`
refuses one's own approval in the database too.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence

from django.db.models import QuerySet

from chatstore.domain.errors import BadInput
from chatstore.domain.runs import Severity
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import Problem, sync_findings
from moderation.domain.states import ApprovalDecision
from moderation.models import Purge, PurgeApproval
from moderation.models.limits import REQUEST_LIFETIME
from moderation.operations.access.audit import record_action, save_with_next_id
from moderation.operations.access.reasons import check_reason
from moderation.operations.access.visibility import (
    ADD_PURGE,
    APPROVE,
    Actor,
    decidable_purges,
    decidable_requests,
    may_over,
    may_over_matches,
    name_of,
    not_everywhere,
    purge_for,
    require,
    require_over_matches,
)
from moderation.operations.purging.lifecycle import lock_preview, queue_purge
from moderation.operations.purging.limits import approval_needed
from moderation.operations.steps.claiming import brief_transaction, bump_version, lock_purge
from moderation.operations.steps.one_by_one import act_one_by_one

END_REQUEST = "end the request for approval of purge"
"""Name of the act of the poll, for the log and the finding of one that fails."""

MAX_REQUESTS = 50
"""Requests that pages list, and that are notified."""

APPROVAL_REQUEST = "approval request"
"""Kind of the finding about an open request, by which it is notified. Subject: "<purge>:<approval>"."""


def request_approval(purge_id: int, *, moderator: User, reason: str, manifest_hash: bytes) -> PurgeApproval:
    """Request the approval of exactly the manifest with this hash.

    Raises what `confirm_purge` does, and `BadInput` within the moderator's limits, or with an open request.
    """
    require(moderator, ADD_PURGE)
    reason = check_reason(reason, missing=_("Enter a reason. The approver will see it."))
    with brief_transaction():
        purge = lock_preview(purge_id, moderator=moderator, manifest_hash=manifest_hash)
        if open_approval(purge) is not None:
            raise BadInput(_("Approval has already been requested."))
        if purge.confirmed_at is not None or approval_needed(purge, moderator) is None:
            raise BadInput(_("This purge is within your limits. You can confirm it yourself."))
        _expire(purge.approvals.undecided())
        approval = PurgeApproval(purge=purge, requested_by=moderator, reason=reason, manifest_hash=manifest_hash)
        save_with_next_id(approval)
        details = {"reason": reason, "manifest": purge.manifest, "manifest_hash": manifest_hash.hex()}
        _record("approval_requested", approval, actor=moderator, **details)
    approval.refresh_from_db()
    return approval


def approve_purge(purge_id: int, approval_id: int, *, approver: User) -> Purge:
    """Approve a request, which confirms the purge in the name of its moderator. Idempotent.

    The caller enqueues the work after the commit. Raises `Forbidden`, `NotFound`; `BadInput` for the requester, for a
    request that is not open, and if the requester may not delete there any more.
    """
    require(approver, APPROVE)
    with brief_transaction():
        _check_may_decide(approver, purge_id)
        purge = lock_purge(purge_id)
        approval = _request(purge, approval_id)
        requester = approval.requested_by
        if requester.pk == approver.pk:
            raise BadInput(_("You cannot approve your own request. Ask another person to approve it."))
        if approval.decision == ApprovalDecision.APPROVED:
            return purge
        require_over_matches(approver, APPROVE, purge)
        is_allowed = may_over(requester, ADD_PURGE, purge) and may_over_matches(requester, ADD_PURGE, purge)
        if not requester.is_active or not is_allowed:
            raise BadInput(
                _("%(name)s can no longer delete these messages. Reject the request.", name=name_of(requester))
            )
        _decide(approval, ApprovalDecision.APPROVED, approver)
        details = {"requested_by": requester.get_username(), "manifest_hash": bytes(approval.manifest_hash).hex()}
        _record("approval_given", approval, actor=approver, **details)
        approved_by = {"approved_by": approver.get_username()}
        queue_purge(purge, moderator=requester, reason=approval.reason, details=approved_by)
        purge.refresh_from_db()
    return purge


def reject_approval(purge_id: int, approval_id: int, *, approver: User, reason: str) -> None:
    """Reject a request. Raises `Forbidden`, `NotFound`; `BadInput` without a reason, and as `approve_purge`."""
    require(approver, APPROVE)
    reason = check_reason(reason, missing=_("Enter a reason. The moderator will see it."))
    with brief_transaction():
        _check_may_decide(approver, purge_id)
        approval = _request(lock_purge(purge_id), approval_id)
        if approval.requested_by_id == approver.pk:
            raise BadInput(_("This is your own request. You can withdraw it."))
        _decide(approval, ApprovalDecision.REJECTED, approver, reason=reason)
        _record("approval_rejected", approval, actor=approver, reason=reason)


def withdraw_approval(purge_id: int, approval_id: int, *, moderator: User) -> None:
    """Withdraw one's own request. Raises `Forbidden`, `NotFound`; `BadInput` if it is not one's own, or not open."""
    require(moderator, ADD_PURGE)
    with brief_transaction():
        purge_for(moderator, purge_id, ADD_PURGE)
        approval = _request(lock_purge(purge_id), approval_id)
        if approval.requested_by_id != moderator.pk:
            raise BadInput(_("Only the person who made this request can withdraw it. Approve or reject it instead."))
        _decide(approval, ApprovalDecision.WITHDRAWN, None)
        _record("approval_withdrawn", approval, actor=moderator)


def may_decide(user: Actor, purge: Purge) -> bool:
    """Return whether a user may approve and reject requests of a purge, apart from their own.

    They see the purge, and have the right wherever it deletes messages: they need none in other guilds that its filter
    names.
    """
    return user.has_perm(APPROVE) and decidable_purges(user, APPROVE).filter(pk=purge.pk).exists()


def _check_may_decide(user: Actor, purge_id: int) -> None:
    """Raise `NotFound` for a purge that the user cannot see, `Forbidden` for one whose requests they cannot decide."""
    if not may_decide(user, purge_for(user, purge_id)):
        raise not_everywhere()


def open_approval(purge: Purge) -> PurgeApproval | None:
    """Return the request of a purge that is waiting for approval; None if there is none or it has expired."""
    return purge.approvals.open().select_related("requested_by").first()


def last_decided(purge: Purge) -> PurgeApproval | None:
    """Return the last request of a purge that another person approved or rejected."""
    decided = purge.approvals.filter(decision__in=(ApprovalDecision.APPROVED, ApprovalDecision.REJECTED))
    return decided.select_related("decided_by").first()


def open_approvals(user: Actor) -> list[PurgeApproval]:
    """Return the requests that a user may decide, oldest first, without their own, in one statement.

    Without the permission there are none, and no statement is executed.
    """
    if not user.has_perm(APPROVE):
        return []
    requests = decidable_requests(user).select_related("requested_by", "purge__moderator")
    return list(requests.order_by("requested_at")[:MAX_REQUESTS])


def own_requests(user: Actor, purge_ids: Collection[int]) -> dict[int, PurgeApproval]:
    """Return the open requests that a user made for some purges, by the purge's ID."""
    own = PurgeApproval.objects.open().filter(purge__in=purge_ids, requested_by_id=user.pk)
    return {approval.purge_id: approval for approval in own}


def were_all_read(requests: Sequence[PurgeApproval]) -> bool:
    """Return whether no more requests wait than those that `open_approvals` returned; False if some may."""
    return len(requests) < MAX_REQUESTS


def check_approvals(_now: dt.datetime) -> None:
    """Open a finding for each open request, so that it is notified as raids are; close those that were decided."""
    waiting = PurgeApproval.objects.open().select_related("requested_by", "purge").order_by("requested_at")
    # By request: one that was withdrawn and made again between two checks is notified again.
    found = {f"{one.purge_id}:{one.pk}": _describe_request(one) for one in waiting[:MAX_REQUESTS]}
    sync_findings(APPROVAL_REQUEST, found)


def _describe_request(approval: PurgeApproval) -> Problem:
    summary = ngettext_lazy(
        "%(name)s requests approval to delete %(count)s message",
        "%(name)s requests approval to delete %(count)s messages",
        approval.purge.manifest,
        name=name_of(approval.requested_by),
    )
    return Problem(Severity.WARNING, summary, {"approval": str(approval.pk)})


def expire_approvals() -> int:
    """End the requests that were not decided within a day; return their number."""
    before = postgres_now() - REQUEST_LIFETIME
    old = PurgeApproval.objects.undecided().filter(requested_at__lte=before)

    def expire(purge_id: int) -> bool:
        # The purge first, as others lock it; one that is locked is left to the next poll.
        locked = Purge.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=purge_id).first()
        return locked is not None and _expire(old.filter(purge_id=purge_id))

    return act_one_by_one(old.order_by("requested_at"), expire, field="purge_id", name=END_REQUEST)


def _expire(undecided: QuerySet[PurgeApproval]) -> bool:
    """End the undecided request of a purge, whose row is locked, if it has one; return whether it had."""
    approval = undecided.select_related("purge").first()
    if approval is None:
        return False
    PurgeApproval.objects.filter(pk=approval.pk).update(decision=ApprovalDecision.EXPIRED, decided_at=ClockTimestamp())
    _record("approval_expired", approval, actor=None)
    bump_version(approval.purge_id)
    return True


def _request(purge: Purge, approval_id: int) -> PurgeApproval:
    approval = purge.approvals.filter(pk=approval_id).select_related("requested_by").first()
    if approval is None:
        raise BadInput(_("This request does not exist. Reload the page."))
    return approval


def _decide(approval: PurgeApproval, decision: ApprovalDecision, person: User | None, *, reason: str = "") -> None:
    """Store a decision on an open request. Raises `BadInput` if it is not open."""
    decided = PurgeApproval.objects.open().filter(pk=approval.pk)
    if not decided.update(decision=decision, decided_by=person, decided_at=ClockTimestamp(), decision_reason=reason):
        raise BadInput(_("This request has already been decided, has expired, or the preview has changed. Reload it."))
    bump_version(approval.purge_id)


def _record(action: str, approval: PurgeApproval, *, actor: User | None, **details: object) -> None:
    record_action(action, actor=actor, purge=approval.purge, details={"approval": str(approval.pk), **details})
