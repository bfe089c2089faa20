"""Legal holds: the list, and the forms that place and lift them."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from chatstore.confirmation import require_confirmation
from chatstore.domain.errors import BadInput, NotFound
from chatstore.operations.rights import require
from moderation.operations.holds import LIFT_HOLD, VIEW_HOLDS, HoldRequest, lift_hold, list_holds, place_hold
from moderation.views.session import actor_of


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(VIEW_HOLDS, raise_exception=True)
def holds(request: HttpRequest) -> HttpResponse:
    """List holds and place one. `user`, `channel` and `message` in the query string fill in the form."""
    if request.method != "POST":
        return _show(request, request.GET)
    typed = request.POST
    requested = HoldRequest(typed.get("user", ""), typed.get("channel", ""), typed.get("message", ""))
    try:
        place_hold(requested, reason=typed.get("reason", ""), actor=actor_of(request))
    except (BadInput, NotFound) as error:
        return _show(request, typed, error_message=error.text, status=400)
    return redirect("holds")


@require_POST
@permission_required(VIEW_HOLDS, raise_exception=True)
def hold_lift(request: HttpRequest, hold_id: int) -> HttpResponse:
    """Lift a hold: purges may delete its messages again."""
    require(request.user, LIFT_HOLD)
    require_confirmation(request)
    try:
        lift_hold(hold_id, actor=actor_of(request), reason=request.POST.get("reason", ""))
    except NotFound:
        raise
    except BadInput as error:
        return _show(request, QueryDict(), error_message=error.text, status=400)
    return redirect("holds")


def _show(request: HttpRequest, typed: QueryDict, *, error_message: str = "", status: int = 200) -> HttpResponse:
    context = {
        "nav": "holds",
        "in_force": list_holds(request.user, in_force=True),
        "lifted": list_holds(request.user, in_force=False),
        "typed": typed,
        "error_message": error_message,
    }
    return render(request, "moderation/holds/holds.html", context, status=status)
