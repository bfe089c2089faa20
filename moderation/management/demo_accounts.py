"""Demo accounts, one for each role."""

from __future__ import annotations

from chatstore.domain.roles import Role
from chatstore.models import RoleGrant
from chatstore.models.users import User

CAST: dict[str, tuple[tuple[Role, ...], str]] = {
    "mona": ((Role.MODERATOR, Role.DIRECT), "reads channels and deletes messages"),
    "lena": ((Role.LEAD, Role.DIRECT), "moderates, lifts holds, and approves erasures"),
    "aron": ((Role.AUDITOR,), "reads channels and the audit log, changes nothing"),
    "otto": ((Role.OPERATOR, Role.DIRECT), "reads channels and purges, deletes nothing"),
    "ada": ((Role.ADMIN,), "everything, and the audit log"),
    "tess": ((), "staff without permissions"),
}
"""Roles for the whole installation and their description, by user name."""


def set_demo_account(name: str, *, password: str) -> User:
    """Create the account or reset it, but for roles that it got or lost since. Idempotent."""
    roles, _ = CAST[name]
    user, _ = User.objects.get_or_create(username=name)
    if not user.check_password(password):
        user.set_password(password)
    user.first_name = name.capitalize()
    user.is_staff = user.is_active = True
    user.is_superuser = False
    user.save()
    if not RoleGrant.objects.filter(account=user).exists():
        set_roles(user, roles)
    return user


def set_roles(user: User, roles: tuple[Role, ...]) -> None:
    """Give an account these roles for the whole installation and no others, unrecorded: for demos and tests."""
    RoleGrant.objects.filter(account=user).delete()
    RoleGrant.objects.bulk_create([RoleGrant(account=user, role=role) for role in roles])
