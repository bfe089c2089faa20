"""Reading removed content, in the audit log.

The entry is inserted before the content is sent: what cannot be recorded is not shown, and the page reports that
Postgres is unavailable. A page that polls, or is opened again from the same address within ten minutes, adds
no second entry.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from chatstore.domain.errors import Forbidden
from chatstore.domain.row_ids import encode_row_id
from chatstore.domain.snowflakes import unix_ms
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.models import AuditEntry, Purge
from moderation.operations.access.audit import complete_details, record_action
from moderation.operations.access.visibility import Actor

REPEATED_WITHIN = dt.timedelta(minutes=10)


def record_message_read(actor: Actor, *, channel_id: int, message_id: int, author_id: int) -> None:
    """Record that a saved copy of a deleted message is shown."""
    details = {"message": str(message_id)}
    _record("copy_read", actor, channel_id=channel_id, chat_user_id=author_id, details=details)


def record_purge_read(actor: Actor, purge: Purge, *, channel_id: int | None, after: str) -> None:
    """Record that a page of the messages of a confirmed purge is shown. after: the message that the page follows."""
    _record("copies_read", actor, purge=purge, channel_id=channel_id, details={"after": after} if after else {})


def _record(action: str, actor: Actor, *, details: dict[str, Any], **subject: Any) -> None:
    if not isinstance(actor, User):
        raise Forbidden(_("Sign in first."))
    # By the index of the actor's entries, of which these are the newest.
    since = encode_row_id(unix_ms(postgres_now() - REPEATED_WITHIN), shard=0, sequence=0)
    recorded = complete_details(details, actor=actor)
    own = AuditEntry.objects.filter(actor=actor, pk__gte=since, action=action, details=recorded)
    named = {name: value for name, value in subject.items() if name in ("purge", "channel_id")}
    if not own.filter(**named).exists():
        record_action(action, actor=actor, details=details, **subject)
