"""Changes in the admin in the audit log. Passwords are never recorded."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.users import User
from moderation.models import RaidSettings
from moderation.operations.access.audit import record_action

_SUBJECTS: dict[type[Model], str] = {
    User: "account",
    RaidSettings: "raid_settings",
    Guild: "guild",
    Channel: "channel",
    ChatUser: "chat_user",
}
_VALUES: dict[str, tuple[str, ...]] = {
    "account": ("is_active", "is_superuser"),
    "raid_settings": ("is_enabled", "messages_per_minute", "accounts"),
    "guild": (),
    "channel": ("kind",),
    "chat_user": ("is_bot",),
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
    record_action(
        action,
        actor=request.user,
        guild_id=_guild_of(obj),
        channel_id=obj.pk if isinstance(obj, Channel) else None,
        chat_user_id=obj.pk if isinstance(obj, ChatUser) else None,
        details=details,
    )


def _guild_of(obj: Model) -> int | None:
    """Return the guild of the entry: that into which a channel was moved."""
    if isinstance(obj, Guild):
        return obj.pk
    return obj.guild_id if isinstance(obj, Channel | RaidSettings) else None


def _fields_of(message: Any) -> list[str]:
    if not isinstance(message, list):
        return []
    return [str(field) for part in message for kind in part.values() for field in kind.get("fields", ())]
