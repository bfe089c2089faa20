"""What an id says, and what it names."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Model
from django.utils import timezone

from chatstore.domain.row_ids import RowId, decode_row_id
from chatstore.domain.snowflakes import Snowflake, decode_snowflake
from chatstore.models import Channel, ChatUser, Guild, ReportCase
from moderation.models import AuditEntry, Erasure, Hold, Note, Purge, Undo

NAMED = (Purge, Undo, Erasure, Hold, Note, AuditEntry, ReportCase, Channel, Guild, ChatUser)
"""Models that are known by their id."""


def decode_id(number: int) -> RowId | Snowflake:
    """Return what an id says: as a snowflake, unless that would be of the future.

    A row's id of today is a snowflake of 20 years later, and more each year; a snowflake of today, taken for a row's
    id, is ten years older.
    """
    snowflake = decode_snowflake(number)
    return snowflake if snowflake.time <= timezone.now() else decode_row_id(number)


def named_by(number: int) -> Sequence[Model]:
    """Return the rows with that id, of whatever model. For commands: no rights are checked."""
    return [row for model in NAMED if (row := model._default_manager.filter(pk=number).first())]
