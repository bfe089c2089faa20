"""Sign-in by password, with entries in the audit log."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from chatstore.client_address import client_address
from chatstore.confirmation import note_confirmation
from chatstore.models.users import User
from moderation.operations.access.sign_ins import record_failed_sign_in, record_sign_in
from moderation.sign_in_stages import mark_unneeded, needs_second_factor


class PasswordBackend(ModelBackend):
    """Django's own, which records wrong passwords. Attempts that were refused before do not reach it."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        """Return the account with that name and password, None if there is none."""
        user: User | None = super().authenticate(request, username=username, password=password, **kwargs)
        if user is None and request is not None and username is not None:
            record_failed_sign_in(username, address=client_address(request))
        return user


@receiver(user_logged_in)
def _record(request: HttpRequest, user: User, **_: Any) -> None:
    record_sign_in(user, address=client_address(request))
    note_confirmation(request)
    if not needs_second_factor(user):
        mark_unneeded(request)
