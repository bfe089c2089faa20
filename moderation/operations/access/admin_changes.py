"""Changes in the admin in the audit log: accounts and raid settings. Passwords are never recorded."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from chatstore.models.users import User
from moderation.models import RaidSettings
from moderation.operations.access.audit import record_action

_SUBJECTS: dict[type[Model], str] = {User: "account", RaidSettings: "raid_settings"}
_VALUES: dict[str, tuple[str, ...]] = {
    "account": ("is_active", "is_superuser"),
    "raid_settings": ("is_enabled", "messages_per_minute", "accounts"),
}
"""Values after the change; those before are in the entry of the change before."""


def record_admin_change(request: HttpRequest, change: str, obj: Model, message: Any) -> None:
    """Record a change within its transaction. message: Django's description, which names the fields."""
    subject = _SUBJECTS.get(type(obj))
    if subject is None or not isinstance(request.user, User):
        return
    details: dict[str, Any] = {"name": str(obj), "id": str(obj.pk), "fields": _fields_of(message)}
    details |= {name: getattr(obj, name) for name in _VALUES[subject]}
    # Django describes it as a change of this one field.
    is_password = subject == "account" and details["fields"] == ["password"]
    action = "password_set" if is_password else f"{subject}_{change}"
    guild_id = obj.guild_id if isinstance(obj, RaidSettings) else None
    record_action(action, actor=request.user, guild_id=guild_id, details=details)


def _fields_of(message: Any) -> list[str]:
    if not isinstance(message, list):
        return []
    return [str(field) for part in message for kind in part.values() for field in kind.get("fields", ())]
