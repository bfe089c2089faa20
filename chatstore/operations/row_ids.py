"""Insertion of rows whose ids `next_id` makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import IntegrityError, transaction

from chatstore.models import Channel

MAX_ATTEMPTS = 5
"""`next_id` repeats an id if 1,024 are taken for one shard in one millisecond; the next attempt gets another one."""

Row = TypeVar("Row")


def retry_taken_ids(insert: Callable[[], Row]) -> Row:
    """Call a function that inserts a row, in a savepoint; call it again if the row's id was taken."""
    for left in reversed(range(MAX_ATTEMPTS)):
        try:
            with transaction.atomic():
                return insert()
        except IntegrityError as error:
            if left == 0 or "_pkey" not in str(error):
                raise
    raise AssertionError


def guild_of_channel(channel_id: int) -> int:
    """Return the id of a channel's guild; 0 for direct messages and unknown channels."""
    return Channel.objects.filter(pk=channel_id).values_list("guild_id", flat=True).first() or 0
