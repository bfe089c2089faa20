"""What changes in a channel that is open in a browser: polled, and next to free while nothing has changed."""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.utils.crypto import salted_hmac

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.snowflakes import MIN_ID, first_id_at, ms_of
from chatstore.operations.gateway.timeline import Timeline, open_timeline
from chatstore.store.activity import latest_of
from moderation.operations.access.visibility import Actor

REFRESH_SECONDS = 60
"""A channel is read again this often although no process has recorded a post: an import or an undo does not."""

REFRESH_WITHOUT_REDIS_SECONDS = 10

OVERLAP_MS = 10_000
"""Messages this much older than the newest one are read again: another process may post one under an earlier ID."""

MAX_NEW = 100


@dataclass(frozen=True, slots=True)
class ChannelState:
    """What identifies the state of a channel that is known without reading it.

    version: of all, signed for a user, who has read the channel if they know it: the answer to a poll needs no other
    check. removals: of what purges deleted and restored; "" if it is unknown, which says nothing.
    """

    version: str
    removals: str


def state_of(user: Actor, channel_id: int) -> ChannelState:
    """Return the newest state; what is read afterwards is not older."""
    try:
        (posted, removed), seconds = latest_of(channel_id), REFRESH_SECONDS
    except StoreUnavailable:
        (posted, removed), seconds = (None, None), REFRESH_WITHOUT_REDIS_SECONDS
    present = f"{user.pk} {channel_id} {posted} {removed} {int(time.time()) // seconds}"
    version = salted_hmac("chatstore.new_messages", present, algorithm="sha256").hexdigest()[:32]
    return ChannelState(version, removed or "")


def read_new_messages(channel_id: int, *, newest: int | None) -> Timeline:
    """Return the messages after the newest one that a page shows, oldest first, with some before it.

    newest: None if the page shows none. Raises `StoreUnavailable`.
    """
    after = MIN_ID if newest is None else max(first_id_at(ms_of(newest) - OVERLAP_MS) - 1, MIN_ID)
    opened = open_timeline(channel_id, after=after, limit=MAX_NEW)
    if newest is not None and opened.page.newer is not None and opened.messages[-1].message_id <= newest:
        # In a flood the page has all of these.
        return open_timeline(channel_id, after=newest, limit=MAX_NEW)
    return opened
