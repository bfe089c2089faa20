"""Security of the signed-in account: its second factor, and resetting another account's."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chatstore.client_address import client_address
from chatstore.confirmation import require_confirmation
from chatstore.domain.errors import BadInput, NotFound
from chatstore.models.users import User
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
from moderation.sign_in_stages import count_failure, mark_passed, mark_unneeded, may_attempt
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
    """Remove the second factor; needs a code."""
    own = actor_of(request)
    if not may_attempt(request, own):
        return too_many_attempts(request)
    try:
        remove_second_factor(own, code=request.POST.get("code", ""), address=client_address(request))
    except BadInput as error:
        count_failure(request, own)
        return _show(request, remove_error=error.text)
    mark_unneeded(request)
    return redirect("account")


@require_POST
@sensitive_post_parameters("code")
def recovery_codes(request: HttpRequest) -> HttpResponse:
    """Replace the recovery codes and show the new ones, once; needs a code."""
    own = actor_of(request)
    if not may_attempt(request, own):
        return too_many_attempts(request)
    try:
        codes = make_recovery_codes(own, code=request.POST.get("code", ""), address=client_address(request))
    except BadInput as error:
        count_failure(request, own)
        return _show(request, codes_error=error.text)
    return render(request, "moderation/account/recovery_codes.html", {"codes": codes})


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(CHANGE_ACCOUNTS, raise_exception=True)
def second_factor_reset(request: HttpRequest, user_id: int) -> HttpResponse:
    """Ask whether to reset another account's second factor, and do so."""
    other = User.objects.filter(pk=user_id).first()
    if other is None:
        raise NotFound(gettext("There is no such account."))
    if request.method == "POST":
        require_confirmation(request)
        reset_second_factor(other, actor=actor_of(request))
        return redirect("admin:auth_user_change", other.pk)
    return render(request, "moderation/account/reset_second_factor.html", {"other": other})


def _show(request: HttpRequest, **errors: str) -> HttpResponse:
    own = actor_of(request)
    context: dict[str, Any] = {
        "device": second_factor_of(own),
        "codes_left": count_recovery_codes(own),
        "is_enforced": must_have_second_factor(own),
        **errors,
    }
    return render(request, "moderation/account/account.html", context, status=400 if errors else 200)
