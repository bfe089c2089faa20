"""Sign-in by password with entries in the audit log, permissions by role, and the end of sessions of inactive accounts.

Receivers, so that it makes no difference where an account is changed: in the admin, by a command, or in a shell.
"""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.signals import user_logged_in
from django.db.models import Model
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.http import HttpRequest

from chatstore.client_address import client_address
from chatstore.confirmation import note_confirmation
from chatstore.domain.roles import rights_of
from chatstore.models.users import User
from chatstore.operations.rights import grants_of
from moderation.operations.access.sessions import (
    ADDRESS,
    MAX_USER_AGENT_CHARACTERS,
    SIGNED_IN_AT,
    USER_AGENT,
    end_all_sessions,
)
from moderation.operations.access.sign_ins import record_failed_sign_in, record_sign_in
from moderation.sign_in_stages import mark_unneeded, needs_second_factor


class PasswordBackend(ModelBackend):
    """Django's own, which records wrong passwords. Attempts that were refused before do not reach it.

    Permissions follow from roles; groups and single permissions have no effect.
    """

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        """Return the account with that name and password, None if there is none."""
        user: User | None = super().authenticate(request, username=username, password=password, **kwargs)
        if user is None and request is not None and username is not None:
            record_failed_sign_in(username)
        return user

    def get_user(self, user_id: int) -> User | None:
        """Return the account with its preferences, which every request reads, in one statement; None if inactive."""
        user = User.objects.select_related("preferences").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None

    def get_all_permissions(self, user_obj: AbstractBaseUser | AnonymousUser, obj: Model | None = None) -> set[str]:
        """Return the rights that the roles of an account give anywhere. `scope_for` returns where."""
        return set(rights_of(grants_of(user_obj))) if isinstance(user_obj, User) and obj is None else set()

    def get_user_permissions(self, user_obj: AbstractBaseUser | AnonymousUser, obj: Model | None = None) -> set[str]:
        """Return none."""
        return set()

    def get_group_permissions(self, user_obj: AbstractBaseUser | AnonymousUser, obj: Model | None = None) -> set[str]:
        """Return none."""
        return set()


@receiver(user_logged_in)
def _begin_session(request: HttpRequest, user: User, **_: Any) -> None:
    record_sign_in(user)
    note_confirmation(request)
    request.session[ADDRESS] = client_address(request)
    request.session[USER_AGENT] = request.headers.get("User-Agent", "")[:MAX_USER_AGENT_CHARACTERS]
    request.session[SIGNED_IN_AT] = time.time()
    if not needs_second_factor(user):
        mark_unneeded(request)


@receiver(post_save, sender=User)
def _end_sessions_of_inactive_account(instance: User, **_: Any) -> None:
    """Otherwise they would go on when the account is activated again."""
    if not instance.is_active:
        end_all_sessions([instance.pk])
