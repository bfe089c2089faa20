"""Writes the audit: one entry an act, in the transaction of the act."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from moderation.models import AuditEntry, Erasure, Hold, Purge, Undo

NEXT_ID_TRIES = 5
"""`next_id()` repeats when 1,024 ids are taken in one millisecond; the next try has another one."""


def record_act(
    act: str,
    *,
    actor: User | None,
    purge: Purge | None = None,
    channel_id: int | None = None,
    details: dict[str, Any] | None = None,
    ids: bytes | None = None,
) -> AuditEntry:
    """Adds an entry; must be called inside the act's own transaction. ids: packed."""
    entry = AuditEntry(act=act, actor=actor, purge=purge, channel_id=channel_id, details=details or {}, ids=ids)
    save_with_next_id(entry)
    return entry


def save_with_next_id(row: AuditEntry | Erasure | Hold | Purge | Undo) -> None:
    """Inserts a row whose key is `next_id()`, again in a new savepoint when the id was taken."""
    for left in reversed(range(NEXT_ID_TRIES)):
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError as error:
            if left == 0 or "_pkey" not in str(error):
                raise
        else:
            return
