"""The lock on an account: what belongs to it is counted and changed by one transaction at a time."""

from __future__ import annotations

from collections.abc import Collection

from chatstore.models.users import User


def lock_account(account: User) -> User:
    """Return the account as it is now, locked until the transaction ends.

    Rows that only refer to it, such as audit entries, can still be added by others.
    """
    return User.objects.select_for_update(no_key=True).get(pk=account.pk)


def lock_accounts(ids: Collection[int]) -> dict[int, User]:
    """Return accounts as they are now, by id, locked in the same way, always in one order, against deadlocks."""
    locked = User.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
    return {account.pk: account for account in locked}
