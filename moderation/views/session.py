"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView

sign_in = LoginView.as_view(template_name="sign_in.html", redirect_authenticated_user=True)
"""Open to everybody: Django marks its own login view as needing no login."""

sign_out = LogoutView.as_view()
"""By POST only, so that no link of a message can sign anybody out."""
