"""Middleware that asks users to confirm that it is them, and then carries out what they posted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext

from chatstore.confirmation import note_confirmation
from chatstore.domain.errors import ConfirmationNeeded
from chatstore.models.users import User
from moderation.operations.access.passkeys import ask_for_one
from moderation.operations.access.second_factors import has_second_factor
from moderation.sign_in_stages import count_failure, may_attempt
from moderation.views.polling import request_reload
from moderation.views.session import actor_of, describe_refused_factor, passes_second_factor, too_many_attempts

FIELD = "confirm_secret"
"""Field of the page: a password, or a code of the second factor."""


_THEN = "confirm_then"
"""Hidden field after a GET: the page that was requested is shown after the confirmation."""


class ConfirmIdentity:
    """Turns `ConfirmationNeeded` into a page that posts the same fields to the same URL, with a password or a code.

    It is checked before the view, which then finds the confirmation in the session. So nothing that was entered is
    lost, and nothing of it has to be stored. Nearer to the views than the pages of other errors.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_view(self, request: HttpRequest, *_view: Any) -> HttpResponse | None:
        """Check what was entered on the page. If it is wrong, show the page again."""
        if request.method != "POST" or FIELD not in request.POST or not request.user.is_authenticated:
            return None
        account = actor_of(request)
        if not may_attempt(request, account):
            return too_many_attempts(request)
        if not _is_right(request, account, request.POST[FIELD]):
            return _show(request, error_message=_describe_refusal(request, account))
        note_confirmation(request)
        return redirect(request.get_full_path()) if _THEN in request.POST else None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Show the page where a confirmation is needed."""
        return _show(request) if isinstance(error, ConfirmationNeeded) else None


def _is_right(request: HttpRequest, account: User, typed: str) -> bool:
    if has_second_factor(account):
        is_right = passes_second_factor(request, account, typed)
        if not is_right:
            count_failure(request, account)
        return is_right
    # Counts a wrong password itself.
    return authenticate(request, username=account.get_username(), password=typed) == account


def _describe_refusal(request: HttpRequest, account: User) -> str:
    return describe_refused_factor(request) if has_second_factor(account) else gettext("Wrong password. Try again.")


def _show(request: HttpRequest, *, error_message: str = "") -> HttpResponse:
    if request.headers.get("HX-Request"):
        return request_reload(HttpResponse(status=204))
    kept = [
        (name, value)
        for name, values in request.POST.lists()
        for value in values
        # A page contains no password, not even in a hidden field: they have to be entered again.
        if name not in {FIELD, "passkey", "csrfmiddlewaretoken"} and "password" not in name
    ]
    if request.method == "GET":
        kept = [(_THEN, "page")]
    account = actor_of(request)
    takes_code = has_second_factor(account)
    context = {
        "kept": kept,
        # Such an account signs in at the identity provider again.
        "has_nothing": not takes_code and not account.has_usable_password(),
        "has_kept": request.method != "GET" and not any("password" in name for name in request.POST),
        "takes_code": takes_code,
        "passkey_options": ask_for_one(request, account) if takes_code else "",
        "minutes": settings.CONFIRM_MINUTES,
        "back": _page_before(request),
        "error_message": error_message,
    }
    return render(request, "moderation/account/confirm.html", context, status=403)


def _page_before(request: HttpRequest) -> str:
    referer = request.headers.get("Referer", "")
    hosts = {request.get_host()}
    is_ours = url_has_allowed_host_and_scheme(referer, allowed_hosts=hosts, require_https=request.is_secure())
    return referer if is_ours else reverse("home")
