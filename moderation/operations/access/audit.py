"""Writing of the audit log: one entry per action, in the transaction of the action."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction

from chatstore.models.users import User
from moderation.models import AuditEntry, Erasure, Hold, Purge, Undo

MAX_NEXT_ID_ATTEMPTS = 5
"""`next_id()` repeats an id if 1,024 are taken in one millisecond; the next attempt gets another one."""


def record_action(
    action: str,
    *,
    actor: User | None,
    purge: Purge | None = None,
    channel_id: int | None = None,
    details: dict[str, Any] | None = None,
    ids: bytes | None = None,
) -> AuditEntry:
    """Add an entry; must be called inside the action's own transaction. ids: packed."""
    entry = AuditEntry(action=action, actor=actor, purge=purge, channel_id=channel_id, details=details or {}, ids=ids)
    save_with_next_id(entry)
    return entry


def save_with_next_id(row: AuditEntry | Erasure | Hold | Purge | Undo) -> None:
    """Insert a row whose key is `next_id()`; retry in a new savepoint if the id was taken."""
    for left in reversed(range(MAX_NEXT_ID_ATTEMPTS)):
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError as error:
            if left == 0 or "_pkey" not in str(error):
                raise
        else:
            return
