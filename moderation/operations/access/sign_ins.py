"""Sign-ins in the audit log."""

from __future__ import annotations

from chatstore.models.users import User
from moderation.operations.access.audit import record_action


def record_sign_in(user: User) -> None:
    """Add an entry for a sign-in."""
    record_action("signed_in", actor=user)


def record_new_password(user: User) -> None:
    """Add an entry for a password that its account has changed itself."""
    record_action("password_changed", actor=user)


def record_failed_sign_in(username: str) -> None:
    """Add an entry for a wrong password, or for an account that does not exist or is not active.

    An unknown name is not recorded: it may be a password that was typed in the wrong field. Unknown names have an entry
    too, so that the time of the answer does not tell which accounts exist.
    """
    account = User.objects.filter(username=username).values_list("username", flat=True).first()
    record_action("sign_in_failed", actor=None, details={"account": account})
