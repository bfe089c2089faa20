"""Demo accounts, one for each role."""

from __future__ import annotations

from django.contrib.auth.models import Group

from chatstore.models.users import User

CAST: dict[str, tuple[str, str]] = {
    "mona": ("moderators", "reads channels and deletes messages"),
    "lena": ("leads", "moderates, lifts holds, and approves erasures"),
    "otto": ("operators", "reads channels and purges, deletes nothing"),
    "ada": ("admins", "everything, and the audit log"),
    "tess": ("", "staff without permissions"),
}
"""Group ("" for none) and its description, by user name."""


def set_demo_account(name: str, *, password: str) -> User:
    """Create the account or reset it to its definition. Idempotent."""
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
