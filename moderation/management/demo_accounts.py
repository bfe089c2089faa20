"""The demo accounts: one for each role."""

from __future__ import annotations

from django.contrib.auth.models import Group, User

CAST: dict[str, tuple[str, str]] = {
    "mona": ("moderators", "reads channels and removes messages"),
    "lena": ("leads", "moderates, lifts holds, and approves what others want erased"),
    "otto": ("operators", "reads channels and purges, removes nothing"),
    "ada": ("admins", "everything, and the audit"),
    "tess": ("", "staff without rights"),
}
"""Group ("" for none) and what it means, by user name."""


def set_demo_account(name: str, *, password: str) -> User:
    """Makes the account, or makes it again what the cast says. Done twice it changes nothing."""
    role, _ = CAST[name]
    user, _ = User.objects.get_or_create(username=name)
    if not user.check_password(password):
        user.set_password(password)
    user.first_name = name.capitalize()
    user.is_staff = user.is_active = True
    user.is_superuser = False
    user.save()
    user.groups.set(Group.objects.filter(name=role))
    return user
