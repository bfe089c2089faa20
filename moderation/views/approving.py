"""Approval of purges above a limit: request, approve, reject, withdraw."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from chatstore.confirmation import require_confirmation
from chatstore.domain.snowflakes import parse_snowflake
from moderation.forms import read_manifest_hash
from moderation.models import Purge
from moderation.operations.access.visibility import ADD_PURGE, APPROVE, purge_for
from moderation.operations.purging.approvals import (
    approve_purge,
    reject_approval,
    request_approval,
    withdraw_approval,
)
from moderation.tasks import enqueue_on_commit
from moderation.views.purges import act_on
from moderation.views.session import actor_of


@require_POST
@permission_required(ADD_PURGE, raise_exception=True)
def purge_request_approval(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Request it for what the preview showed, with a reason."""
    shown = purge_for(request.user, purge_id)
    _confirm_identity(request, shown)
    reason = request.POST.get("reason", "")
    return act_on(
        request,
        shown,
        lambda: request_approval(
            purge_id, moderator=actor_of(request), reason=reason, manifest_hash=read_manifest_hash(request.POST)
        ),
    )


@require_POST
@permission_required(APPROVE, raise_exception=True)
def purge_approve(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Approve the request that the form names, which starts the purge."""
    shown = purge_for(request.user, purge_id)
    _confirm_identity(request, shown)
    approval_id = parse_snowflake(request.POST.get("approval", ""))

    def approve() -> None:
        approve_purge(purge_id, approval_id, approver=actor_of(request))
        enqueue_on_commit(purge_id)

    return act_on(request, shown, approve)


@require_POST
@permission_required(APPROVE, raise_exception=True)
def purge_reject(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Reject the request that the form names, with a reason."""
    shown = purge_for(request.user, purge_id)
    approval_id = parse_snowflake(request.POST.get("approval", ""))
    reason = request.POST.get("reason", "")
    return act_on(
        request, shown, lambda: reject_approval(purge_id, approval_id, approver=actor_of(request), reason=reason)
    )


@require_POST
@permission_required(ADD_PURGE, raise_exception=True)
def purge_withdraw(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Withdraw one's own request, which the form names."""
    shown = purge_for(request.user, purge_id)
    approval_id = parse_snowflake(request.POST.get("approval", ""))
    return act_on(request, shown, lambda: withdraw_approval(purge_id, approval_id, moderator=actor_of(request)))


def _confirm_identity(request: HttpRequest, shown: Purge) -> None:
    if shown.manifest > settings.CONFIRM_ABOVE_MESSAGES:
        require_confirmation(request)
