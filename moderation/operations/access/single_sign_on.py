"""Accounts of people who sign in at an OpenID Connect provider, and the roles that the provider gives them.

An identity is the provider's issuer URL and subject. At its first sign-in it is linked to the account that has the
same verified mail address, or to a new account. Names and addresses may change hands at the provider, so that they
count only then. A superuser's account is never linked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from chatstore.domain.errors import Forbidden
from chatstore.domain.roles import Grant
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.users import User
from moderation.models import StaffIdentity
from moderation.operations.access.audit import record_action
from moderation.operations.access.roles import replace_roles

MAX_NAME_CHARACTERS = 150
MAX_SUBJECT_CHARACTERS = 255
MAX_ADDRESS_CHARACTERS = 254
_NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")


@dataclass(frozen=True, slots=True)
class Identity:
    """A person as a provider describes them. email: only if the provider has verified it, else "".

    groups: names of groups at the provider.
    """

    issuer: str
    subject: str
    name: str
    email: str
    full_name: str
    groups: Collection[str]


def identity_of(claims: Mapping[str, Any], *, issuer: str) -> Identity:
    """Return the identity that verified claims describe. Raises `Forbidden` without a subject."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_CHARACTERS or "\x00" in subject:
        raise Forbidden(_("The identity provider sent no valid subject. Ask an administrator."))
    groups = claims.get(settings.OIDC_GROUPS_CLAIM)
    return Identity(
        issuer=issuer,
        subject=subject,
        name=_text(claims.get("preferred_username")) or _text(claims.get("email")) or subject,
        email=_text(claims.get("email"))[:MAX_ADDRESS_CHARACTERS] if claims.get("email_verified") is True else "",
        full_name=_text(claims.get("name")),
        groups=[group for group in groups if isinstance(group, str)] if isinstance(groups, list) else (),
    )


@transaction.atomic
def account_of_identity(identity: Identity) -> User:
    """Return the account of an identity, linked or created if it has none, with the roles that the provider gives it.

    Roles that `OIDC_ROLES` does not name were given by an administrator, and stay. Raises `Forbidden` for an account
    that is not active, and for an identity that gets none.
    """
    grants = grants_for(identity.groups)
    linked = StaffIdentity.objects.filter(issuer=identity.issuer, subject=identity.subject).select_related("account")
    known = linked.first()
    account = known.account if known is not None else _first_account(identity, grants)
    if not isinstance(account, User) or not account.is_active:
        raise Forbidden(_("This account is not active. Ask an administrator."))
    if account.is_superuser:
        # It has become one since it was linked.
        raise Forbidden(_("This account cannot be used for single sign-on. Sign in with its password."))
    replace_roles(account, grants, among={grant for _theirs, grant in settings.OIDC_ROLES})
    return account


def grants_for(names: Collection[str]) -> set[Grant]:
    """Return the roles that groups of the provider give, by `OIDC_ROLES`."""
    return {grant for theirs, grant in settings.OIDC_ROLES if theirs in names}


def _first_account(identity: Identity, grants: Collection[Grant]) -> User:
    """Return the account that an identity is linked to at its first sign-in. Raises `Forbidden`."""
    account = _account_with_address(identity) or _create_account(identity, grants)
    StaffIdentity.objects.create(issuer=identity.issuer, subject=identity.subject, account=account)
    details = {"account": account.get_username(), "subject": identity.subject}
    record_action("identity_linked", actor=account, details=details)
    return account


def _account_with_address(identity: Identity) -> User | None:
    found = list(User.objects.filter(email__iexact=identity.email)[:2]) if identity.email else []
    is_taken = StaffIdentity.objects.filter(issuer=identity.issuer, account__in=found).exists()
    if len(found) > 1 or is_taken or any(one.is_superuser for one in found):
        raise Forbidden(
            _("The account with this mail address cannot be used for single sign-on. Ask an administrator.")
        )
    return found[0] if found else None


def _create_account(identity: Identity, grants: Collection[Grant]) -> User:
    if not grants:
        raise Forbidden(_("None of your groups gives you access. Ask an administrator."))
    # Normalizing first: it may make a name longer, and equal to another one.
    name = _NOT_IN_NAMES.sub("-", User.normalize_username(identity.name)).strip("-")[:MAX_NAME_CHARACTERS]
    if not name or User.objects.filter(username__iexact=name).exists():
        raise Forbidden(_("An account with your name already exists. Ask an administrator."))
    first, _space, last = identity.full_name.partition(" ")
    # Without a password: it signs in at the provider only.
    account = User.objects.create_user(
        name, email=identity.email, first_name=first[:MAX_NAME_CHARACTERS], last_name=last[:MAX_NAME_CHARACTERS],
        is_staff=True,
    )  # fmt: skip
    details = {"name": name, "id": str(account.pk), "fields": [], "by": "single sign-on"}
    record_action("account_added", actor=None, details=details)
    return account


def _text(value: Any) -> str:
    return value.replace("\x00", "").strip() if isinstance(value, str) else ""
