"""Template tag of requests for approval: the notice on every page of those who may decide them."""

from __future__ import annotations

from dataclasses import dataclass

from django import template

from moderation.models import PurgeApproval
from moderation.operations.purging.approvals import open_approvals

register = template.Library()


@dataclass(frozen=True, slots=True)
class ApprovalNotice:
    """Number of open requests that the viewer may decide. only: the request, if it is a single one."""

    count: int
    only: PurgeApproval | None


@register.simple_tag(takes_context=True)
def approval_notice(context: template.Context) -> ApprovalNotice | None:
    """Return the notice; None without requests, and on the page of the only one. Error pages may have no viewer."""
    user = context.get("user")
    if user is None or not user.is_authenticated:
        return None
    awaited = context.get("awaited")
    waiting = [request for request in open_approvals(user) if request.pk != awaited]
    if not waiting:
        return None
    return ApprovalNotice(len(waiting), waiting[0] if len(waiting) == 1 else None)
