"""Sign-in in two stages, password and second factor, and sign-out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from chatstore.domain.errors import BadInput, Forbidden
from chatstore.models.users import User
from moderation.operations.access.passkeys import ask_for_one, verify_passkey
from moderation.operations.access.second_factors import (
    add_second_factor,
    has_second_factor,
    link_of_secret,
    new_secret,
    text_of_secret,
    verify_code,
)
from moderation.presentation.qr_codes import draw_qr_code
from moderation.sign_in_stages import (
    account_in_second_stage,
    begin_second_stage,
    complete_sign_in,
    count_failure,
    may_attempt,
    needs_second_factor,
)
from moderation.views.polling import request_reload

_IN_SET_UP = "second_factor_in_set_up"
"""Key in the session of a secret that is being set up."""


class SignIn(LoginView):
    """The sign-in page. A fragment that is requested after the session ended reloads its whole page."""

    template_name = "moderation/account/sign_in.html"
    redirect_authenticated_user = True

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the form; reload the page for htmx, which was redirected here."""
        if request.headers.get("HX-Request"):
            return request_reload(HttpResponse(status=204))
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Return the context, with the name of the identity provider if there is one."""
        return super().get_context_data(**kwargs, single_sign_on_name=settings.OIDC_ISSUER and settings.OIDC_NAME)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Sign in, or go on to the second stage."""
        account = form.get_user()
        if isinstance(account, User) and needs_second_factor(account):
            return begin_second_stage(self.request, account, next_url=self.get_redirect_url())
        return super().form_valid(form)


sign_in = SignIn.as_view()
"""Open to anyone: Django marks its own login view as needing no login."""

sign_out = login_not_required(LogoutView.as_view())
"""POST only, so that a link in a message cannot sign a user out. Open to those who have passed only the password."""


@login_not_required
def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """Redirect the admin's sign-in page, which knows no second factor, to ours."""
    if request.user.is_authenticated and not request.user.is_staff:
        # The admin would send them here again.
        raise PermissionDenied
    query = request.GET.urlencode()
    return redirect(f"{reverse('sign_in')}?{query}" if query else "sign_in")


# Between password and second factor a visitor is not signed in; the session names the account.
@login_not_required
@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_code(request: HttpRequest) -> HttpResponse:
    """Ask for the code of the second factor. The answer to a wrong one does not tell why it was refused."""
    account = account_in_second_stage(request)
    if account is None or not has_second_factor(account):
        return _leave_stage(request, account, "sign_in_set_up")
    context: dict[str, Any] = {"shown_account": account}
    if request.method == "POST":
        if not may_attempt(request, account):
            return too_many_attempts(request)
        if passes_second_factor(request, account, request.POST.get("code", "")):
            return redirect(complete_sign_in(request, account))
        count_failure(request, account)
        context["error_message"] = describe_refused_factor(request)
    context["passkey_options"] = ask_for_one(request, account)
    return render(request, "moderation/account/sign_in_code.html", context)


@login_not_required
@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_set_up(request: HttpRequest) -> HttpResponse:
    """Set up a second factor during a sign-in, for an account whose role enforces one."""
    account = account_in_second_stage(request)
    if account is None or has_second_factor(account):
        return _leave_stage(request, account, "sign_in_code")
    codes, context = set_up(request, account)
    if codes is None:
        return render(request, "moderation/account/sign_in_set_up.html", context)
    context = {"codes": codes, "next": complete_sign_in(request, account)}
    return render(request, "moderation/account/recovery_codes.html", context)


def set_up(request: HttpRequest, account: User) -> tuple[list[str] | None, dict[str, Any]]:
    """Return the recovery codes if a posted code confirms the new second factor; else None and the form's context."""
    secret, error_message = request.session.get(_IN_SET_UP), ""
    if request.method == "POST" and secret:
        try:
            code = request.POST.get("code", "")
            codes = add_second_factor(account, secret, code=code, current_key=request.session.session_key)
        except BadInput as error:
            error_message = error.text
        else:
            del request.session[_IN_SET_UP]
            return codes, {}
    if not secret:
        secret = request.session[_IN_SET_UP] = new_secret()
    link = link_of_secret(account, secret)
    context = {
        "shown_account": account,
        "qr_code": draw_qr_code(link),
        "secret": text_of_secret(secret),
        "link": link,
        "error_message": error_message,
    }
    return None, context


def passes_second_factor(request: HttpRequest, account: User, code: str) -> bool:
    """Return whether the request has an answer of one of the account's passkeys, or else the right code."""
    if "passkey" in request.POST:
        return verify_passkey(request, account, request.POST["passkey"])
    return verify_code(account, code)


def describe_refused_factor(request: HttpRequest) -> str:
    """Return the message about a code or a passkey that was refused. It does not tell why it was."""
    if "passkey" in request.POST:
        return gettext("This passkey was not accepted. Try again, or enter a code.")
    return gettext("This code is not valid. Wait for the next one and try again.")


def _leave_stage(request: HttpRequest, account: User | None, other: str) -> HttpResponse:
    """Redirect to the other page of the stage, or to sign in first; reload the page of a fragment for htmx."""
    if request.headers.get("HX-Request"):
        return request_reload(HttpResponse(status=204))
    return redirect("sign_in" if account is None else other)


def too_many_attempts(
    request: HttpRequest, _response: HttpResponse | None = None, _credentials: Mapping[str, Any] | None = None
) -> HttpResponse:
    """Return the sign-in page for an address that has to pause. It is the same whether the account exists or not."""
    minutes = settings.SIGN_IN_PAUSE_MINUTES
    if request.user.is_authenticated:
        message = ngettext(
            "There were too many attempts. Try again in %(minutes)s minute.",
            "There were too many attempts. Try again in %(minutes)s minutes.",
            minutes,
        ) % {"minutes": minutes}
        context = {"status": 429, "title": gettext("Too many attempts"), "message": message}
        page = render(request, "moderation/shared/error.html", context, status=429)
    else:
        context = {"pause_minutes": minutes, "next": request.POST.get("next", "")}
        page = render(request, SignIn.template_name, context, status=429)
    page.headers["Retry-After"] = str(settings.SIGN_IN_PAUSE_MINUTES * 60)
    return page


def actor_of(request: HttpRequest) -> User:
    """Return the signed-in account. Raises `Forbidden` without one, which the middleware rules out."""
    if not isinstance(request.user, User):
        raise Forbidden(gettext("Sign in first."))
    return request.user
