"""Display names that several staff accounts have: lists of people then show the user name too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from django.contrib.auth.models import AbstractUser
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chatstore.domain.controls import show_hidden
from chatstore.models import RoleGrant
from chatstore.models.users import User
from chatstore.operations.rights import scope_for
from moderation.operations.access.visibility import Actor, name_of

_SHARES_NAME = "_shares_name"
"""Attribute of an account that is shown beside others."""


def known_accounts(user: Actor, right: str) -> QuerySet[User]:
    """Return all staff for a role in the whole installation, else those who have or had a role where the user has the
    right: who else is staff is none of their business.
    """
    scope = scope_for(user, right)
    if scope.every_guild:
        return User.objects.all()
    return User.objects.filter(pk__in=RoleGrant.objects.within(scope).order_by().values("account"))


def mark_shared_names(user: Actor, accounts: Iterable[User | None], *, right: str) -> None:
    """Mark those of some accounts whose display name other staff has that a user knows by a right, in one statement.

    `shares_name` reads the mark.
    """
    shown = [account for account in accounts if account is not None]
    names = shared_names(shown, among=known_accounts(user, right)) if shown else set()
    for account in shown:
        setattr(account, _SHARES_NAME, name_of(account) in names)


def shares_name(account: AbstractUser) -> bool:
    """Return whether an account was marked as one of several with the same display name."""
    return bool(getattr(account, _SHARES_NAME, False))


def distinct_name_of(account: AbstractUser) -> str:
    """Return the name of a staff account, with invisible characters spelt out.

    With the user name where the account was marked as one of several with the same display name.
    """
    name, user_name = name_of(account), account.get_username()
    if not shares_name(account) or name == user_name:
        return show_hidden(name)
    return _("%(name)s (%(user_name)s)") % {"name": show_hidden(name), "user_name": show_hidden(user_name)}


def shared_names(accounts: Iterable[User], *, among: QuerySet[User]) -> set[str]:
    """Return the display names that several of some accounts, and of all those in a queryset, have.

    One statement reads all names: they are compared as they are shown, which SQL strips in another way. There are
    hundreds of accounts, not millions.
    """
    known = among.only("username", "first_name", "last_name")
    named = {account.pk: name_of(account) for account in (*known, *accounts)}
    return {name for name, count in Counter(named.values()).items() if count > 1}
