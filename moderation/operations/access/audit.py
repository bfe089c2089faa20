"""Writing of the audit log: one entry per action, in the transaction of the action.

What workers do is one entry per purge and channel; the steps keep their own counts.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from django.db import connection
from django_guid import get_guid

from chatstore.domain.row_ids import SHARDS, shard_of
from chatstore.models import Channel
from chatstore.models.ids import NextId
from chatstore.models.users import User
from chatstore.operations.row_ids import guild_of_channel, retry_taken_ids
from moderation.domain.filter_json import filter_from_json
from moderation.domain.filters import authors_of
from moderation.models import AuditEntry, Erasure, Hold, Note, Purge, PurgeApproval, Step, Undo, UndoStep

_ACTS_BY = "acts_by"
"""Attribute of an account in whose name a command acts."""

_acts_from: ContextVar[str | None] = ContextVar("acts_from", default=None)
"""Network address of the client whose request acts."""

MAX_CHANNELS_AT_ONCE = 2_500
"""Maximum number of channels whose entries are added in one transaction, which locks the purge."""


def record_action(
    action: str,
    *,
    actor: User | None,
    purge: Purge | None = None,
    channel_id: int | None = None,
    guild_id: int | None = None,
    chat_user_id: int | None = None,
    details: dict[str, Any] | None = None,
    ids: bytes | None = None,
) -> AuditEntry:
    """Add an entry; must be called inside the action's own transaction.

    guild_id: if it follows from neither the channel nor the purge. chat_user_id: the one chat user whom the action
    concerns; that of the purge by default. ids: packed.
    """
    if chat_user_id is None and purge is not None:
        chat_user_id = _only_author(purge)
    entry = AuditEntry(
        action=action,
        actor=actor,
        purge=purge,
        channel_id=channel_id,
        guild_id=guild_id,
        chat_user_id=chat_user_id,
        details=complete_details(details or {}, actor=actor),
        ids=ids,
        request_id=get_guid() or "",
    )
    save_with_next_id(entry)
    return entry


def complete_details(details: Mapping[str, Any], *, actor: User | None) -> dict[str, Any]:
    """Return the details of an act with its means: the command that acts, or the address of the request."""
    means = {"by": getattr(actor, _ACTS_BY, ""), "address": _acts_from.get()}
    return {**details, **{name: value for name, value in means.items() if value}}


def act_from(address: str | None) -> None:
    """Record in the entries that follow from which network address this thread's request acts; None: no request."""
    _acts_from.set(address)


def act_by_command(account: User) -> User:
    """Record in the entries of an account's acts that a command acts, and for which user of the operating system."""
    setattr(account, _ACTS_BY, name_command_line())
    return account


def name_command_line() -> str:
    """Return "command line" with the user of the operating system."""
    try:
        return f"command line ({getpass.getuser()})"
    except (KeyError, OSError):
        return f"command line ({os.getuid()})"


def record_purged(purge: Purge) -> bool:
    """Add entries for channels with what was deleted there, when a purge ends; return whether each has its entry.

    Otherwise the caller commits, and calls again: a purge may have 50,000 channels. Each names the moderator: those who
    may see one of the channels only cannot see the purge.
    """
    counts = ("deleted", "already_gone", "held", "failed")
    facts = {"moderator": f"(SELECT username FROM {User._meta.db_table} WHERE id = {purge.moderator_id:d})"}
    return _record_by_channel("channel_purged", purge=purge, steps=Step, counts=counts, facts=facts)


def record_restored(purge: Purge) -> bool:
    """Do the same with what was restored, when the undos of a purge end."""
    counts = ("requested", "restored", "withdrawn", "still_purged", "already_live", "no_copy", "failed")
    return _record_by_channel("channel_restored", purge=purge, steps=UndoStep, counts=counts, facts={})


def _record_by_channel(
    action: str, *, purge: Purge, steps: type[Step | UndoStep], counts: Sequence[str], facts: Mapping[str, str]
) -> bool:
    """Add an entry per channel in which steps of the purge have ended since its last such entry, with their sums.

    counts: columns to add up. facts: further details of each entry, as expressions of SQL. Must be called with the
    purge's row locked. Returns whether there are no more channels.
    """
    entry, columns = AuditEntry._meta.db_table, ", ".join(counts)
    guild = f"(SELECT guild_id FROM {Channel._meta.db_table} WHERE id = channel_id)"
    # As `shard_of`, whose remainder is never negative.
    shard = f"mod(mod(coalesce({guild}, 0), {SHARDS}) + {SHARDS}, {SHARDS})"
    values = {"steps": "count(*)", **{name: f"sum({name})" for name in counts}, **facts}
    details = ", ".join(f"'{name}', {value}" for name, value in values.items())
    with connection.cursor() as cursor:
        # Not a join, for which Postgres may go through all entries for each step: it knows nothing yet of these rows.
        cursor.execute(
            f"WITH step AS (SELECT channel_id, counted_at AS at, false AS is_entry, {columns} "
            f"FROM {steps._meta.db_table} WHERE purge_id = %s AND counted_at IS NOT NULL "
            f"UNION ALL SELECT channel_id, at, true, {', '.join('0' for _ in counts)} "
            f"FROM {entry} WHERE purge_id = %s AND action = %s), marked AS (SELECT *, "
            "max(at) FILTER (WHERE is_entry) OVER (PARTITION BY channel_id) AS recorded_at FROM step) "
            f"INSERT INTO {entry} (id, action, at, request_id, purge_id, channel_id, guild_id, chat_user_id, details) "
            f"SELECT next_id({shard}), %s, clock_timestamp(), %s, %s, channel_id, {guild}, %s, "
            f"jsonb_build_object({details}) "
            "FROM marked WHERE NOT is_entry AND at > coalesce(recorded_at, '-infinity') "
            "GROUP BY channel_id ORDER BY channel_id LIMIT %s",
            [purge.pk, purge.pk, action, action, get_guid() or "", purge.pk, _only_author(purge), MAX_CHANNELS_AT_ONCE],
        )
        return int(cursor.rowcount) < MAX_CHANNELS_AT_ONCE


def save_with_next_id(row: AuditEntry | Erasure | Hold | Note | Purge | PurgeApproval | Undo) -> None:
    """Insert a row with an id that carries the shard of its guild."""
    guild_id = _guild_of(row)
    if isinstance(row, AuditEntry):
        row.guild_id = guild_id or None
    new_id: Any = NextId(shard_of(guild_id))
    row.id = new_id
    retry_taken_ids(lambda: row.save(force_insert=True))


def _guild_of(row: AuditEntry | Erasure | Hold | Note | Purge | PurgeApproval | Undo) -> int:
    """Return the guild that a row belongs to: that of its purge, or of its channel; 0 for several, or none."""
    if isinstance(row, AuditEntry) and row.guild_id:
        return row.guild_id
    purge = row if isinstance(row, Purge) else getattr(row, "purge", None)
    if purge is not None and purge.guild_id:
        return int(purge.guild_id)
    channel_id = getattr(row, "channel_id", None)
    return 0 if channel_id is None else guild_of_channel(channel_id)


def _only_author(purge: Purge) -> int | None:
    """Return the chat user whose messages a purge selects, if it is a single one."""
    where = purge.selection.get("where")
    authors = authors_of(filter_from_json(where)) if where else None
    return next(iter(authors)) if authors is not None and len(authors) == 1 else None
