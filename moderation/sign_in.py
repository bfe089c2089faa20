"""Sign-in by password, with entries in the audit log, and the end of sessions whose account loses rights.

Receivers, so that it makes no difference where an account is changed: in the admin, by a command, or in a shell.
"""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group
from django.contrib.auth.signals import user_logged_in
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_save, pre_delete
from django.dispatch import receiver
from django.http import HttpRequest

from chatstore.client_address import client_address
from chatstore.confirmation import note_confirmation
from chatstore.models.users import User
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
def _begin_session(request: HttpRequest, user: User, **_: Any) -> None:
    record_sign_in(user, address=client_address(request))
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


@receiver(m2m_changed, sender=User.groups.through)
def _end_sessions_after_change_of_groups(
    instance: Model, action: str, reverse: bool, pk_set: set[int] | None, **_: Any
) -> None:
    """End the sessions of accounts that lose a group, or get one that enforces a second factor."""
    groups, accounts = (pk_set, [instance.pk]) if not reverse else ([instance.pk], pk_set)
    if action == "pre_clear" and isinstance(instance, Group):
        _end_sessions_of_members(instance)
    elif action in {"pre_clear", "post_remove"}:
        end_all_sessions(accounts or ())
    elif action == "post_add" and settings.SECOND_FACTOR_GROUPS:
        added = Group.objects.filter(pk__in=groups or (), name__in=settings.SECOND_FACTOR_GROUPS)
        if added.exists():
            end_all_sessions(accounts or ())


@receiver(pre_delete, sender=Group)
def _end_sessions_of_deleted_group(instance: Group, **_: Any) -> None:
    _end_sessions_of_members(instance)


def _end_sessions_of_members(group: Group) -> None:
    end_all_sessions(group.user_set.values_list("pk", flat=True))
