"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest

from chatstore.domain.errors import Forbidden

sign_in = LoginView.as_view(template_name="sign_in.html", redirect_authenticated_user=True)
"""Open to everybody: Django marks its own login view as needing no login."""

sign_out = LogoutView.as_view()
"""By POST only, so that no link of a message can sign anybody out."""


def actor_of(request: HttpRequest) -> User:
    """The signed-in account that acts; raises `Forbidden` for nobody, which the middleware keeps out before."""
    if not isinstance(request.user, User):
        raise Forbidden("Sign in first.")
    return request.user
