"""The model of accounts, which AUTH_USER_MODEL names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model

if TYPE_CHECKING:
    # A type checker needs the class that the settings name.
    from django.contrib.auth.models import User
else:
    User = get_user_model()

__all__ = ["User"]
