"""Sessions of browsers, with the account that is signed in, so that they can be listed and ended."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models import Q


class StaffSession(AbstractBaseSession):
    """Session of one browser. `account` is empty until a sign-in is complete.

    last_used_at: not older than a minute while the session is used. Address and browser are in the session's data.
    """

    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    last_used_at = models.DateTimeField()

    class Meta(AbstractBaseSession.Meta):
        # No permissions: an account sees and ends only its own sessions.
        abstract = False
        default_permissions = ()
        indexes = (models.Index(fields=("account",), name="session_by_account", condition=Q(account__isnull=False)),)

    @classmethod
    def get_session_store_class(cls) -> Any:
        """Return the class that encodes the data, which uses this model."""
        return import_module(settings.SESSION_ENGINE).SessionStore
