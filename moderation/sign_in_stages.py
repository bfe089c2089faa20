"""Session between the password and the second factor, and the mark of sessions that have passed both.

After the password the visitor is not signed in: the session only names the account that they may complete the sign-in
for. So every page, fragment and export refuses it like any visitor's. A session that was signed in in another way,
without the second factor that its account needs, is taken back to this stage by the middleware.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.contrib.auth import SESSION_KEY, login, logout
from django.contrib.auth.signals import user_login_failed
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare

from chatstore.models.users import User
from moderation.operations.access.second_factors import has_second_factor, must_have_second_factor
from moderation.operations.access.sessions import SECOND_FACTOR

STAGE_MINUTES = 10
"""How long a password is good for the second stage."""

_STAGE = "sign_in_stage"
_INVITED = {"username": " invitation"}
"""Counts wrong links of invitations. No account can be called so."""


def needs_second_factor(account: User) -> bool:
    """Return whether a sign-in has a second stage: a code, or setting up what makes codes."""
    return has_second_factor(account) or must_have_second_factor(account)


def begin_second_stage(request: HttpRequest, account: User, *, next_url: str) -> HttpResponse:
    """Note whose password was right, and return the redirect to the page of the second stage."""
    request.session.cycle_key()
    request.session[_STAGE] = {
        "account": account.pk,
        # A new password ends this stage.
        "hash": account.get_session_auth_hash(),
        "at": time.time(),
        "next": next_url,
    }
    return redirect("sign_in_code" if has_second_factor(account) else "sign_in_set_up")


def account_in_second_stage(request: HttpRequest) -> User | None:
    """Return the account whose password was right a few minutes ago; None if there is none."""
    stage = request.session.get(_STAGE)
    if not stage or not 0 <= time.time() - stage["at"] <= STAGE_MINUTES * 60:
        return None
    account = User.objects.filter(pk=stage["account"], is_active=True).first()
    if account is None or not constant_time_compare(stage["hash"], account.get_session_auth_hash()):
        return None
    return account


def complete_sign_in(request: HttpRequest, account: User, *, has_passed_factor: bool = True) -> str:
    """Sign in an account that has passed both stages, or needs only one; return the URL to continue at."""
    stage = request.session.pop(_STAGE, {})
    login(request, account, backend=settings.AUTHENTICATION_BACKENDS[-1])
    if has_passed_factor:
        mark_passed(request)
    return str(stage.get("next") or reverse(settings.LOGIN_REDIRECT_URL))


def mark_passed(request: HttpRequest) -> None:
    """Mark the session as one that has passed a second factor."""
    request.session[SECOND_FACTOR] = True


def mark_unneeded(request: HttpRequest) -> None:
    """Mark the session of an account that needs no second factor, by the present settings."""
    request.session[SECOND_FACTOR] = settings.SECOND_FACTOR_ROLES


def may_attempt(request: HttpRequest, account: User) -> bool:
    """Return whether this address need not pause for this account; the same rule as for passwords."""
    return bool(AxesProxyHandler.is_allowed(request, {"username": account.get_username()}))


def count_failure(request: HttpRequest, account: User) -> None:
    """Count a wrong code like a wrong password. If the address has to pause now, the middleware answers so."""
    user_login_failed.send(sender=__name__, credentials={"username": account.get_username()}, request=request)


def may_open_invitation(request: HttpRequest) -> bool:
    """Return whether this address need not pause after links that do not work; the same rule as for passwords."""
    return bool(AxesProxyHandler.is_allowed(request, _INVITED))


def count_wrong_invitation(request: HttpRequest) -> None:
    """Count a link that does not work like a wrong password."""
    user_login_failed.send(sender=__name__, credentials=dict(_INVITED), request=request)


class RequireSecondFactor:
    """Takes a session back to the second stage if it lacks the mark although its account needs a second factor.

    Comes after Django's authentication and reads nothing but the session, unless the mark is missing or from before a
    change of `SECOND_FACTOR_ROLES`.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if SESSION_KEY in request.session and not _is_marked(request) and isinstance(request.user, User):
            account = request.user
            if needs_second_factor(account):
                logout(request)
                next_url = request.get_full_path() if request.method == "GET" else ""
                return begin_second_stage(request, account, next_url=next_url)
            mark_unneeded(request)
        return self._get_response(request)


def _is_marked(request: HttpRequest) -> bool:
    mark = request.session.get(SECOND_FACTOR)
    return mark is True or (mark is not None and mark == settings.SECOND_FACTOR_ROLES)
