"""The page of the limits on what one person deletes."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from chatstore.confirmation import require_confirmation
from chatstore.domain.errors import BadInput, Forbidden
from chatstore.operations.health.channel_list import guild_names
from chatstore.operations.rights import GIVE_ROLES, VIEW_ROLES
from moderation.domain.limits import LIMITED_ROLES, LIMITS, Limits
from moderation.forms import read_cursor
from moderation.operations.access.limits import cursor_to, limits_in, list_limits, set_limits
from moderation.operations.selection.places import parse_grants
from moderation.presentation.roles import LIMIT_LABELS, role_choices
from moderation.views.saved import redirect_saved
from moderation.views.session import actor_of

MAX_DIGITS = 10


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(VIEW_ROLES, raise_exception=True)
def limits(request: HttpRequest) -> HttpResponse:
    """List limits, and set those of a role in one place. `edit` in the query string fills in the form."""
    if request.method != "POST":
        return _show(request, _stored(request))
    if not request.user.has_perm(GIVE_ROLES):
        raise Forbidden(gettext("Only administrators can set limits."))
    require_confirmation(request)
    typed, actor = request.POST.dict(), actor_of(request)
    try:
        (place,) = parse_grants(typed.get("role", ""), guild=typed.get("server", ""), channels="", user=actor)
        wanted = Limits(**{name: _number(typed.get(name, "")) for name in LIMITS})
        saved = set_limits(place.role, place.guild_id, wanted, actor=actor)
    except BadInput as error:
        return _show(request, typed, error_message=error.text)
    if saved is None:
        return redirect_saved(request.path, fragment="current")
    return redirect_saved(request.path, fragment=f"limits-{saved}", after=cursor_to(actor, saved))


def _stored(request: HttpRequest) -> dict[str, str]:
    """Return the values of the limits that the query string names."""
    limits_id = read_cursor(request.GET, "edit")
    row = limits_in(request.user, limits_id) if limits_id is not None else None
    if row is None:
        return {}
    values = {name: str(limit) for name, limit in row.limits.as_json().items()}
    return {"role": row.role, "server": str(row.guild_id or ""), **values}


def _number(text: str) -> int | None:
    """Return a limit as typed, with or without separators between its digits; None for no limit."""
    digits = "".join(text.split()).replace(",", "")
    if not digits:
        return None
    if not digits.isascii() or not digits.isdigit() or len(digits) > MAX_DIGITS:
        raise BadInput(gettext("“%(text)s” is not a whole number. Leave it empty for no limit.") % {"text": text[:40]})
    return int(digits)


def _show(request: HttpRequest, values: Mapping[str, str], *, error_message: str = "") -> HttpResponse:
    may_set = request.user.has_perm(GIVE_ROLES)
    context = {
        "nav": "roles",
        "page": list_limits(request.user, after=read_cursor(request.GET, "after")),
        "may_set": may_set,
        "choices": role_choices(LIMITED_ROLES),
        "guilds": guild_names(request.user, GIVE_ROLES) if may_set else (),
        "values": values,
        "fields": [(name, LIMIT_LABELS[name], values.get(name, "")) for name in LIMITS],
        "error_message": error_message,
    }
    return render(request, "moderation/roles/limits.html", context, status=400 if error_message else 200)
