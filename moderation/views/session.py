"""Signing in and out."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse

from chatstore.domain.errors import Forbidden
from moderation.views.polling import ask_reload


class SignIn(LoginView):
    """The sign-in page. A fragment asked for after the session ended reloads its whole page instead."""

    template_name = "sign_in.html"
    redirect_authenticated_user = True

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form; for htmx, which was redirected here, the word to reload."""
        if request.headers.get("HX-Request"):
            return ask_reload(HttpResponse(status=204))
        return super().get(request, *args, **kwargs)


sign_in = SignIn.as_view()
"""Open to everybody: Django marks its own login view as needing no login."""

sign_out = LogoutView.as_view()
"""By POST only, so that no link of a message can sign anybody out."""


def actor_of(request: HttpRequest) -> User:
    """The signed-in account that acts; raises `Forbidden` for nobody, which the middleware keeps out before."""
    if not isinstance(request.user, User):
        raise Forbidden("Sign in first.")
    return request.user
