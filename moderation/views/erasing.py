"""Permanent deletion of a purge's copies: request, approve, reject."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from chatstore.confirmation import require_confirmation
from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.domain.texts import gettext_lazy as _
from moderation.operations.access.visibility import purge_for
from moderation.operations.erasure.requests import ERASE, approve_erasure, reject_erasure, request_erasure
from moderation.tasks import enqueue_erasure_on_commit
from moderation.views.purges import act_on
from moderation.views.session import actor_of


@require_POST
@permission_required(ERASE, raise_exception=True)
def purge_erase(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Request it, with a reason."""
    require_confirmation(request)
    reason = request.POST.get("reason", "")
    shown = purge_for(request.user, purge_id)
    return act_on(request, shown, lambda: request_erasure(purge_id, moderator=actor_of(request), reason=reason))


@require_POST
@permission_required(ERASE, raise_exception=True)
def purge_erase_approve(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Approve the request that the form names. `is_final`: the box about what cannot be restored is checked."""
    require_confirmation(request)
    erasure_id = parse_snowflake(request.POST.get("erasure", ""))
    shown = purge_for(request.user, purge_id)

    def approve() -> None:
        if "is_final" not in request.POST:
            raise BadInput(_("Confirm that none of the messages can be restored afterwards."))
        approve_erasure(purge_id, erasure_id, moderator=actor_of(request))
        enqueue_erasure_on_commit(purge_id)

    return act_on(request, shown, approve)


@require_POST
@permission_required(ERASE, raise_exception=True)
def purge_erase_reject(request: HttpRequest, purge_id: int) -> HttpResponse:
    """Reject the request that the form names, or withdraw one's own."""
    erasure_id = parse_snowflake(request.POST.get("erasure", ""))
    shown = purge_for(request.user, purge_id)
    return act_on(request, shown, lambda: reject_erasure(purge_id, erasure_id, moderator=actor_of(request)))
