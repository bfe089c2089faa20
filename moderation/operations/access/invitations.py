"""Invitations: a new account with its roles, and a link by which its owner sets the password, once.

The account is created at once, so that its roles can be viewed and changed, but it has no password until the link is
used. Only a hash of the link's token is stored: the link is shown once, to the account that invites.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.domain.roles import Grant
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import RoleGrant
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.account_lock import lock_account
from chatstore.operations.rights import GIVE_ROLES, require
from moderation.models import Invitation, StaffIdentity
from moderation.operations.access.audit import record_action
from moderation.operations.access.roles import check_grant, give_roles

TOKEN_BYTES = 32
MAX_NAME_CHARACTERS = 150
"""Length of Django's columns."""

MAX_PEOPLE = 50
"""Limit for the people who are invited at once, in one transaction."""


class Person(NamedTuple):
    """A person to invite."""

    username: str
    full_name: str


def parse_people(text: str) -> list[Person]:
    """Return whom to invite: a line each, with a user name and then, if given, a full name; sorted.

    Raises `BadInput` if there is no line, too many, or a name twice.
    """
    people = sorted(Person(*(*line.strip().split(maxsplit=1), "")[:2]) for line in text.splitlines() if line.strip())
    if not people:
        raise BadInput(_("Enter a user name."))
    if len(people) > MAX_PEOPLE:
        raise BadInput(_("Invite at most %(count)s people at once.", count=str(MAX_PEOPLE)))
    for one, following in pairwise(people):
        if one.username == following.username:
            raise BadInput(
                _(
                    "The user name %(name)s is listed twice. Remove one of them.",
                    name=one.username[:MAX_NAME_CHARACTERS],
                )
            )
    return people


def invite_people(
    people: Sequence[Person], grants: Sequence[Grant], *, actor: User, until: dt.datetime | None = None
) -> list[tuple[User, str]]:
    """Invite all or, if one of them cannot be, none, as `invite` does; return each account with its token."""
    with transaction.atomic():
        return [
            invite(person.username, grants, actor=actor, full_name=person.full_name, until=until) for person in people
        ]


def invite(
    username: str,
    grants: Sequence[Grant],
    *,
    actor: User,
    full_name: str = "",
    until: dt.datetime | None = None,
) -> tuple[User, str]:
    """Create an account with roles, and return it with the token of its link. An earlier link ends.

    For an account that was invited and has not set its password yet, only the link is made again, besides the roles;
    this takes the right to give all of its roles, because the link opens the account. Raises `Forbidden`, `NotFound`,
    and `BadInput` for a name that cannot be used or is taken.
    """
    require(actor, GIVE_ROLES)
    username, full_name = User.normalize_username(username.strip()), full_name.strip()
    _check_name(username, full_name)
    if not grants:
        raise BadInput(_("Choose a role."))
    for grant in grants:
        check_grant(grant, actor=actor)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with transaction.atomic():
        account = _account_named(username, full_name, actor)
        Invitation.objects.filter(account=account, ended_at=None).update(ended_at=ClockTimestamp())
        expires_at = timezone.now() + dt.timedelta(hours=settings.INVITATION_HOURS)
        Invitation.objects.create(account=account, token_hash=_hash(token), expires_at=expires_at, invited_by=actor)
        details = {"account": username, "until": expires_at.isoformat()}
        record_action("account_invited", actor=actor, details=details)
        give_roles(account, grants, actor=actor, until=until)
    return account, token


def account_invited_by(token: str) -> User:
    """Return the account of a link. Raises `NotFound` for one that was used, replaced, is too old or never existed.

    It also ends when the account that made it may not, or no longer, give all roles of the invited one.
    """
    return _open_invitation(token).account


def accept_invitation(token: str, *, password: str) -> User:
    """Set the password of the account; the link is not valid again. Raises `NotFound`, `BadInput` for the password."""
    account = account_invited_by(token)
    try:
        validate_password(password, account)
    except ValidationError as error:
        raise BadInput(" ".join(error.messages)) from None
    with transaction.atomic():
        account = lock_account(account)
        invitation = _open_invitation(token)
        used = Invitation.objects.filter(pk=invitation.pk, ended_at=None, expires_at__gt=ClockTimestamp())
        if not used.update(ended_at=ClockTimestamp()):
            raise _no_invitation()
        account.set_password(password)
        account.save(update_fields=["password"])
        record_action("invitation_accepted", actor=account)
    return account


def record_wrong_invitation() -> None:
    """Add an entry for a link that does not work. What was in it is not recorded: it may be a part of a right one."""
    record_action("invitation_failed", actor=None)


def _check_name(username: str, full_name: str) -> None:
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError:
        shown = username[:MAX_NAME_CHARACTERS]
        raise BadInput(
            _("“%(name)s” is not a user name: it can contain letters, digits and @ . + - _ only.", name=shown)
        ) from None
    if not username or max(len(username), len(full_name)) > MAX_NAME_CHARACTERS:
        raise BadInput(_("Enter a user name of at most %(count)s characters.", count=str(MAX_NAME_CHARACTERS)))
    if "\x00" in full_name:
        raise BadInput(_("A name cannot contain a NUL character. Remove it."))


def _account_named(username: str, full_name: str, actor: User) -> User:
    """Return a new account, or one that waits for its owner and all of whose roles the actor may give."""
    account = User.objects.select_for_update().filter(username=username).first()
    if account is None:
        try:
            with transaction.atomic():
                return User.objects.create_user(username, first_name=full_name, is_staff=True)
        except IntegrityError:
            raise _is_taken(username) from None
    if not _awaits_owner(account) or not Invitation.objects.filter(account=account).exists():
        raise _is_taken(username)
    if not _may_give_all_roles_of(account, actor):
        raise _is_taken(username)
    return account


def _may_give_all_roles_of(account: User, actor: User) -> bool:
    """Return whether an account may give all roles that another one has: a link opens all of them."""
    for row in RoleGrant.objects.filter(account=account).in_force():
        try:
            check_grant(row.grant, actor=actor)
        except (BadInput, Forbidden, NotFound):
            return False
    return True


def _awaits_owner(account: User) -> bool:
    """Return whether an account can only be entered by an invitation so far."""
    is_linked = StaffIdentity.objects.filter(account=account).exists()
    return account.is_active and not account.is_superuser and not account.has_usable_password() and not is_linked


def _is_taken(username: str) -> BadInput:
    return BadInput(_("The account %(name)s already exists. Give it a role instead.", name=username))


def _open_invitation(token: str) -> Invitation:
    found = (
        Invitation.objects.filter(token_hash=_hash(token), ended_at=None, expires_at__gt=ClockTimestamp())
        .select_related("account", "invited_by")
        .first()
    )
    if found is None or not _awaits_owner(found.account):
        raise _no_invitation()
    # Roles may have been given since, or those of the inviter taken.
    if not _may_give_all_roles_of(found.account, found.invited_by):
        raise _no_invitation()
    return found


def _no_invitation() -> NotFound:
    return NotFound(_("This link was already used or has expired. Ask the person who invited you for a new one."))


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
