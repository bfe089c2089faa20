"""Sign-in at an OpenID Connect provider: the redirect to it, and the way back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView

from chatstore.confirmation import note_confirmation
from chatstore.domain.errors import Forbidden, NotFound, StoreUnavailable
from moderation.operations.access.sign_ins import record_failed_sign_in
from moderation.presentation.texts import translate
from moderation.sign_in_stages import begin_second_stage, mark_passed, needs_second_factor
from moderation.single_sign_on import ERRORS, Begin, is_enabled, read_setting
from moderation.views.session import SignIn

logger = logging.getLogger(__name__)

BACKEND = "moderation.single_sign_on.Backend"


@login_not_required
@require_safe
def begin(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider."""
    _require_enabled()
    try:
        return _begin(request)
    except StoreUnavailable as error:
        return _fail(request, translate(error.text), status=503)


@login_not_required
@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """Complete a sign-in with the code that the provider sent, or tell why it cannot be completed."""
    _require_enabled()
    if request.GET.get("error"):
        # The library would sign out whoever follows such a link.
        return _fail(request, _cancelled())
    try:
        return _callback(request)
    except StoreUnavailable as error:
        return _fail(request, translate(error.text), status=503)
    except Forbidden as error:
        record_failed_sign_in("")
        return _fail(request, translate(error.text))
    except ERRORS as error:
        # The text of an error may contain the answer of the provider.
        logger.warning("single sign-on failed: %s", type(error).__name__)
        record_failed_sign_in("")
        return _fail(request, gettext("The identity provider’s answer is not valid. Try again."))


class _Callback(OIDCAuthenticationCallbackView):  # type: ignore[misc]
    @staticmethod
    def get_settings(attr: str, *args: Any) -> Any:
        return read_setting(attr, *args)

    def login_failure(self) -> HttpResponse:
        return _fail(self.request, _cancelled())

    def login_success(self) -> HttpResponse:
        """Sign in, or go on to the second stage. A user who is signed in confirms by it that it is them."""
        request, account = self.request, self.user
        next_url = str(request.session.pop("oidc_login_next", None) or "")
        request.session.pop("oidc_states", None)
        if not settings.OIDC_PASSES_SECOND_FACTOR and needs_second_factor(account):
            return begin_second_stage(request, account, next_url=next_url)
        login(request, account, backend=BACKEND)
        # Who has a session at the provider enters nothing there. Without a time nothing was confirmed.
        note_confirmation(request, at=min(getattr(request, "signed_in_there_at", None) or 0, time.time()))
        if settings.OIDC_PASSES_SECOND_FACTOR:
            mark_passed(request)
        return redirect(next_url or settings.LOGIN_REDIRECT_URL)


_begin: Callable[[HttpRequest], HttpResponse] = Begin.as_view()
_callback: Callable[[HttpRequest], HttpResponse] = _Callback.as_view()


def _require_enabled() -> None:
    if not is_enabled():
        raise NotFound(gettext("Single sign-on is not configured."))


def _cancelled() -> str:
    return gettext("The sign-in was cancelled or took too long. Try again.")


def _fail(request: HttpRequest, message: str, *, status: int = 403) -> HttpResponse:
    context = {"error_message": message, "single_sign_on_name": settings.OIDC_NAME}
    return render(request, SignIn.template_name, context, status=status)
