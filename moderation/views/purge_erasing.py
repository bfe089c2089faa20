"""Context of the permanent deletion of a purge's copies."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.urls import reverse

from moderation.domain.states import WITHOUT_COPIES, ErasureDecision
from moderation.models import Erasure, Hold, Purge
from moderation.models.limits import REQUEST_LIFETIME
from moderation.operations.access.staff_names import mark_shared_names
from moderation.operations.access.visibility import VIEW_PURGES, Actor, may_over_visible, name_of
from moderation.operations.erasure.execution import next_run_at
from moderation.operations.erasure.requests import (
    ERASE,
    describe_blocking_hold,
    erasure_blocked_reason,
    is_open,
)
from moderation.operations.preview.evidence import may_export_evidence
from moderation.operations.steps.totals import CopyCounts


@dataclass(frozen=True, slots=True)
class ErasureView:
    """A request for permanent deletion, or its outcome.

    may_request: the viewer has the permission, and there is something to erase. held: why a hold forbids it, or "".
    request: the one that waits for an answer. is_mine: the viewer made it. expires_at: when it expires.
    last_request: the last one, if it was rejected or blocked by a hold. erasure: the approved one. copies: what
    would be deleted; None if the viewer neither sees a request nor may make one. also_kept: (purge ID, how many of the
    messages that purge keeps too). evidence_url: where to export evidence while there is content; "" if the viewer may
    not.
    next_run_at: when unreadable copies are removed from the disks; None if unknown, or done.
    """

    may_request: bool = False
    may_decide: bool = False
    held: str = ""
    request: Erasure | None = None
    is_mine: bool = False
    expires_at: dt.datetime | None = None
    last_request: Erasure | None = None
    erasure: Erasure | None = None
    copies: CopyCounts | None = None
    also_kept: Sequence[tuple[str, int]] = ()
    evidence_url: str = ""
    next_run_at: dt.datetime | None = None

    @property
    def is_deleting(self) -> bool:
        """True if copies are still readable while they are being deleted."""
        return self.erasure is not None and self.erasure.unreadable_at is None

    @property
    def requester(self) -> str:
        """Name of the account whose request was approved."""
        return name_of(self.erasure.requested_by) if self.erasure else ""

    @property
    def decider(self) -> str:
        """Name of the account that approved it, or rejected the last request."""
        shown = self.erasure or self.last_request
        return name_of(shown.decided_by) if shown and shown.decided_by else ""


def describe_erasing(
    user: Actor, purge: Purge, *, copies: Callable[[], CopyCounts], blocking_hold: Callable[[], Hold | None]
) -> ErasureView:
    """Return what the page shows to this user. copies: counts them. blocking_hold: finds one that covers some."""
    requests = purge.erasures.select_related("requested_by", "decided_by")
    if purge.state in WITHOUT_COPIES:
        erasure = requests.get(decision=ErasureDecision.APPROVED)
        waits = erasure.unreadable_at is not None and erasure.off_disk_at is None and not erasure.wait_reason
        return ErasureView(
            erasure=erasure,
            also_kept=list(erasure.also_kept.items()),
            next_run_at=next_run_at() if waits else None,
        )
    if erasure_blocked_reason(purge):
        return ErasureView()
    has_right = may_over_visible(user, ERASE, purge)
    last = requests.first()
    # There is no other request while one is open.
    request = last if last is not None and is_open(last) else None
    if request is not None:
        mark_shared_names(user, (request.requested_by,), right=VIEW_PURGES)
    hold = blocking_hold() if has_right else None
    return ErasureView(
        may_request=has_right and request is None,
        may_decide=has_right and request is not None,
        held=describe_blocking_hold(hold.reason) if hold else "",
        request=request,
        is_mine=request is not None and request.requested_by_id == user.pk,
        expires_at=request.requested_at + REQUEST_LIFETIME if request else None,
        last_request=last
        if last is not None and last.decision in (ErasureDecision.REJECTED, ErasureDecision.HELD)
        else None,
        copies=copies() if has_right or request else None,
        also_kept=list(request.also_kept.items()) if request else (),
        evidence_url=reverse("purge_evidence", args=[purge.pk]) if may_export_evidence(user, purge) else "",
    )
