"""Legal holds: the list, and the forms that place and lift them."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from chatstore.confirmation import require_confirmation
from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.rights import require
from moderation.operations.access.visibility import visible_channels
from moderation.operations.holds import (
    LIFT_HOLD,
    PLACE_HOLD,
    VIEW_HOLDS,
    HoldRequest,
    lift_hold,
    list_holds,
    place_hold,
)
from moderation.operations.selection.parsing import AmbiguousName, find_author, find_channel
from moderation.views.picks import describe_choice, describe_cut, describe_rows
from moderation.views.session import actor_of


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(VIEW_HOLDS, raise_exception=True)
def holds(request: HttpRequest) -> HttpResponse:
    """List holds and place one. `user`, `channel` and `message` in the query string fill in the form."""
    if request.method != "POST":
        return _show(request, request.GET)
    typed = request.POST
    require(request.user, PLACE_HOLD)
    try:
        place_hold(_read(request), reason=typed.get("reason", ""), actor=actor_of(request))
    except AmbiguousName as error:
        return _show(request, typed, ambiguous=error, error_message=error.question, status=400)
    except (BadInput, NotFound) as error:
        return _show(request, typed, error_message=error.text, status=400)
    return redirect("holds")


def _read(request: HttpRequest) -> HoldRequest:
    """Return the hold that is typed: a user and a channel by name or ID. Raises `BadInput` for unknown names."""
    user, channel, message = (request.POST.get(name, "").strip() for name in ("user", "channel", "message"))
    if "\x00" in user + channel:
        raise BadInput(_("A name cannot contain a NUL character. Remove it."))
    if user:
        user = str(find_author(user))
    if channel:
        channel = str(find_channel(channel, visible_channels(request.user, PLACE_HOLD)).pk)
    return HoldRequest(user, channel, message)


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


def _show(
    request: HttpRequest,
    typed: QueryDict,
    *,
    error_message: str = "",
    ambiguous: AmbiguousName | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the page. ambiguous: a name that was typed, with the users or channels that it may mean as buttons."""
    in_force, lifted = list_holds(request.user)
    context = {
        "nav": "holds",
        "chosen": describe_choice(request.user, channel=typed.get("channel", ""), person=typed.get("user", "")),
        "in_force": in_force,
        "lifted": lifted,
        "typed": typed,
        "error_message": error_message,
        "candidates": describe_rows(ambiguous.candidates) if ambiguous else [],
        "candidates_cut": describe_cut(ambiguous) if ambiguous else "",
        "candidate_field": "channel" if ambiguous and ambiguous.is_of_channels else "user",
    }
    return render(request, "moderation/holds/holds.html", context, status=status)
