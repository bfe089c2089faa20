"""Roles: who has which, where and until when; giving and taking them, and inviting new staff."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required, permission_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from chatstore.confirmation import require_confirmation
from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.domain.roles import Grant
from chatstore.models.users import User
from chatstore.operations.health.channel_list import guild_names
from chatstore.operations.rights import GIVE_ROLES, VIEW_ROLES, scope_for
from moderation.forms import read_cursor
from moderation.operations.access.invitations import (
    accept_invitation,
    account_invited_by,
    invite_people,
    parse_people,
    record_wrong_invitation,
)
from moderation.operations.access.roles import give_roles, list_roles, take_role
from moderation.operations.lookup.audit_log import account_named, account_names
from moderation.operations.selection.places import parse_grants, parse_until
from moderation.presentation.page_urls import invitation_link
from moderation.presentation.roles import ROLE_LABELS, role_choices
from moderation.sign_in_stages import (
    begin_second_stage,
    complete_sign_in,
    count_wrong_invitation,
    may_open_invitation,
    needs_second_factor,
)
from moderation.views.saved import redirect_saved
from moderation.views.session import actor_of, too_many_attempts


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(VIEW_ROLES, raise_exception=True)
def roles(request: HttpRequest) -> HttpResponse:
    """List roles and give one. `account` and `past` in the query string choose which are listed."""
    if request.method != "POST":
        return _show(request)
    if not request.user.has_perm(GIVE_ROLES):
        raise Forbidden(gettext("Only administrators can give roles."))
    require_confirmation(request)
    typed, actor = request.POST, actor_of(request)
    try:
        account = account_named(_clean(typed.get("person", "")))
        if account is None:
            raise BadInput(gettext("There is no such account. Invite a new one below."))
        given = give_roles(account, _grants(typed, actor), actor=actor, until=_until(typed))
    except (BadInput, Forbidden) as error:
        return _show(request, typed=typed, error_message=error.text)
    # With a fragment of its own: browsers keep that of the form otherwise, which is at the end of the page.
    return redirect_saved(request.path, fragment=f"role-{given[-1].pk}")


@require_POST
@permission_required(GIVE_ROLES, raise_exception=True)
def role_take(request: HttpRequest, grant_id: int) -> HttpResponse:
    """Remove a role. The sessions of its account end."""
    try:
        take_role(grant_id, actor=actor_of(request))
    except NotFound:
        raise
    except BadInput as error:
        return _show(request, error_message=error.text)
    return redirect("roles")


@require_POST
@permission_required(GIVE_ROLES, raise_exception=True)
def role_invite(request: HttpRequest) -> HttpResponse:
    """Invite new accounts with a role, and show their links once."""
    require_confirmation(request)
    typed, actor = request.POST, actor_of(request)
    try:
        people = parse_people(typed.get("people", ""))
        invited = invite_people(people, _grants(typed, actor), actor=actor, until=_until(typed))
    except (BadInput, Forbidden) as error:
        return _show(request, invited=typed, invite_error=error.text)
    context = {
        "nav": "roles",
        "invited": [(account, invitation_link(token)) for account, token in invited],
        "hours": settings.INVITATION_HOURS,
    }
    return render(request, "moderation/roles/invited.html", context)


# The token takes the place of a sign-in, once. Wrong ones are throttled like wrong passwords.
@login_not_required
@sensitive_post_parameters("password", "password_again")
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest) -> HttpResponse:
    """Set the password of an invited account, and go on to sign in. `token`: in the query, which is not logged."""
    token = request.GET.get("token", "")
    if not may_open_invitation(request):
        return too_many_attempts(request)
    try:
        account = account_invited_by(token)
    except NotFound:
        record_wrong_invitation()
        count_wrong_invitation(request)
        raise
    context: dict[str, Any] = {"shown_account": account}
    if request.method == "POST":
        try:
            return _accept(request, token)
        except NotFound:
            raise
        except BadInput as error:
            context["error_message"] = error.text
    status = 400 if request.method == "POST" else 200
    return render(request, "moderation/account/invitation.html", context, status=status)


def _accept(request: HttpRequest, token: str) -> HttpResponse:
    password = request.POST.get("password", "")
    if password != request.POST.get("password_again", ""):
        raise BadInput(gettext("The passwords differ. Enter the same one twice."))
    account = accept_invitation(token, password=password)
    if needs_second_factor(account):
        return begin_second_stage(request, account, next_url="")
    return redirect(complete_sign_in(request, account, has_passed_factor=False))


def _grants(typed: QueryDict, actor: User) -> list[Grant]:
    role, guild, channels = (typed.get(name, "") for name in ("role", "server", "channels"))
    return parse_grants(role, guild=guild, channels=channels, user=actor)


def _until(typed: QueryDict) -> Any:
    return parse_until(typed.get("until", ""), now=timezone.localtime())


def _clean(name: str) -> str:
    return name.strip().replace("\x00", "")


def _show(
    request: HttpRequest,
    *,
    typed: QueryDict | None = None,
    invited: QueryDict | None = None,
    error_message: str = "",
    invite_error: str = "",
) -> HttpResponse:
    query = request.GET
    account, with_past = query.get("account", ""), "past" in query
    before = read_cursor(query, "before")
    may_give = request.user.has_perm(GIVE_ROLES)
    context = {
        "nav": "roles",
        "page": list_roles(request.user, account=account, with_past=with_past, before=before),
        "shown": account,
        "with_past": with_past,
        "is_first": before is None,
        "now": timezone.now(),
        "may_give": may_give,
        "choices": role_choices(ROLE_LABELS),
        "people": account_names(request.user, GIVE_ROLES) if may_give else (),
        "suggests_all": scope_for(request.user, GIVE_ROLES).every_guild,
        "guilds": guild_names(request.user, GIVE_ROLES) if may_give else (),
        "typed": typed or QueryDict(),
        "invited": invited or QueryDict(),
        "error_message": error_message,
        "invite_error": invite_error,
    }
    return render(request, "moderation/roles/roles.html", context, status=400 if error_message or invite_error else 200)
