"""Display names that several staff accounts have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from django.db.models import QuerySet

from chatstore.models.users import User
from moderation.operations.access.visibility import name_of


def shared_names(accounts: Iterable[User], *, among: QuerySet[User]) -> set[str]:
    """Return the display names that several of some accounts, and of all those in a queryset, have.

    One statement reads all names: they are compared as they are shown, which SQL strips in another way. There are
    hundreds of accounts, not millions.
    """
    known = among.only("username", "first_name", "last_name")
    named = {account.pk: name_of(account) for account in (*known, *accounts)}
    return {name for name, count in Counter(named.values()).items() if count > 1}
