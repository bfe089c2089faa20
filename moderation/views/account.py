"""Security of the signed-in account: password, second factor, sessions; and resetting another's second factor."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.forms import PasswordChangeForm
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.generic import RedirectView

from chatstore.confirmation import note_confirmation, require_confirmation
from chatstore.domain.errors import BadInput, NotFound
from chatstore.models.users import User
from moderation.operations.access.passkeys import (
    add_passkey,
    are_available,
    ask_for_new,
    list_passkeys,
    remove_passkey,
)
from moderation.operations.access.second_factors import (
    CHANGE_ACCOUNTS,
    count_recovery_codes,
    has_second_factor,
    make_recovery_codes,
    must_have_second_factor,
    remove_second_factor,
    reset_second_factor,
    second_factor_of,
)
from moderation.operations.access.sessions import end_other_sessions, end_session, list_sessions
from moderation.operations.access.sign_ins import record_new_password
from moderation.presentation.user_agents import describe_user_agent
from moderation.sign_in_stages import count_failure, mark_passed, mark_unneeded, may_attempt
from moderation.views.saved import redirect_saved
from moderation.views.session import actor_of, set_up, too_many_attempts

# Every signed-in account changes what belongs to itself, whatever its rights: no permission is required.


@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """Show how the account signs in."""
    return _show(request)


@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def second_factor(request: HttpRequest) -> HttpResponse:
    """Set up a second factor: show its QR code, and add it when a code confirms it."""
    own = actor_of(request)
    if has_second_factor(own):
        return redirect("account")
    if request.method == "POST":
        require_confirmation(request)
    codes, context = set_up(request, own)
    if codes is None:
        status = 400 if request.method == "POST" else 200
        return render(request, "moderation/account/second_factor.html", context, status=status)
    mark_passed(request)
    return render(request, "moderation/account/recovery_codes.html", {"codes": codes})


@require_POST
@sensitive_post_parameters("code")
def second_factor_remove(request: HttpRequest) -> HttpResponse:
    """Remove the second factor; needs a code. All other sessions of the account end."""
    own = actor_of(request)
    if not may_attempt(request, own):
        return too_many_attempts(request)
    try:
        remove_second_factor(own, code=request.POST.get("code", ""), current_key=request.session.session_key)
    except BadInput as error:
        count_failure(request, own)
        return _show(request, remove_error=error.text)
    mark_unneeded(request)
    return redirect("account")


@require_http_methods(["GET", "HEAD", "POST"])
def passkey_add(request: HttpRequest) -> HttpResponse:
    """Add a passkey beside the authenticator app; takes a recent confirmation."""
    own = actor_of(request)
    if not has_second_factor(own) or not are_available(request):
        return redirect("account")
    require_confirmation(request)
    context: dict[str, Any] = {"name": request.POST.get("name", "")}
    if request.method == "POST":
        try:
            add_passkey(request, own, request.POST.get("passkey", ""), name=context["name"])
        except BadInput as error:
            context["error_message"] = error.text
        else:
            return redirect("account")
    context["options"] = ask_for_new(request, own)
    return render(
        request, "moderation/account/passkey.html", context, status=400 if "error_message" in context else 200
    )


@require_POST
def passkey_remove(request: HttpRequest, passkey_id: int) -> HttpResponse:
    """Remove a passkey; takes a recent confirmation."""
    require_confirmation(request)
    remove_passkey(actor_of(request), passkey_id)
    return redirect("account")


@require_POST
@sensitive_post_parameters("code")
def recovery_codes(request: HttpRequest) -> HttpResponse:
    """Replace the recovery codes and show the new ones, once; needs a code."""
    own = actor_of(request)
    if not may_attempt(request, own):
        return too_many_attempts(request)
    try:
        codes = make_recovery_codes(own, code=request.POST.get("code", ""))
    except BadInput as error:
        count_failure(request, own)
        return _show(request, codes_error=error.text)
    return render(request, "moderation/account/recovery_codes.html", {"codes": codes})


@sensitive_post_parameters("old_password", "new_password1", "new_password2")
@require_http_methods(["GET", "HEAD", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    """Change the password. All other sessions of the account end."""
    own = actor_of(request)
    form = PasswordChangeForm(own, request.POST if request.method == "POST" else None)
    if request.method != "POST":
        return render(request, "moderation/account/password.html", {"form": form})
    if not may_attempt(request, own):
        return too_many_attempts(request)
    if not form.is_valid():
        if "old_password" in form.errors:
            count_failure(request, own)
        return render(request, "moderation/account/password.html", {"form": form}, status=400)
    with transaction.atomic():
        form.save()
        record_new_password(own)
        update_session_auth_hash(request, own)
        end_other_sessions(own, current_key=request.session.session_key)
    note_confirmation(request)
    return redirect_saved(reverse("account"))


admin_password = RedirectView.as_view(pattern_name="password")
"""In place of the admin's page, which ends no sessions and records nothing."""


@require_POST
def sessions_end(request: HttpRequest) -> HttpResponse:
    """End one session of the account, or all others."""
    own = actor_of(request)
    if "others" in request.POST:
        end_other_sessions(own, current_key=request.session.session_key)
    else:
        end_session(own, request.POST.get("session", ""))
    return redirect("account")


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(CHANGE_ACCOUNTS, raise_exception=True)
def second_factor_reset(request: HttpRequest, user_id: int) -> HttpResponse:
    """Ask whether to reset another account's second factor, and do so."""
    other = User.objects.filter(pk=user_id).first()
    if other is None:
        raise NotFound(gettext("There is no such account."))
    reason, error_message = request.POST.get("reason", ""), ""
    if request.method == "POST":
        require_confirmation(request)
        try:
            reset_second_factor(other, actor=actor_of(request), reason=reason)
        except BadInput as error:
            error_message = error.text
        else:
            return redirect("admin:auth_user_change", other.pk)
    context = {"other": other, "reason": reason, "error_message": error_message}
    status = 400 if error_message else 200
    return render(request, "moderation/account/reset_second_factor.html", context, status=status)


def _show(request: HttpRequest, **errors: str) -> HttpResponse:
    own = actor_of(request)
    sessions = list_sessions(own, current_key=request.session.session_key)
    context: dict[str, Any] = {
        "device": second_factor_of(own),
        "codes_left": count_recovery_codes(own),
        "passkeys": list_passkeys(own),
        "may_add_passkey": are_available(request),
        "is_enforced": must_have_second_factor(own),
        "sessions": [(session, describe_user_agent(session.user_agent)) for session in sessions],
        **errors,
    }
    return render(request, "moderation/account/account.html", context, status=400 if errors else 200)
