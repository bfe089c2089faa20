"""Signal that users are reading pages, on which background jobs throttle themselves.

Every process that reads pages refreshes a key in Redis, at most five times a second and from a background thread, so
that no page waits for it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from chatstore.domain.errors import StoreUnavailable
from chatstore.store.background import BackgroundSender
from chatstore.store.redis import redis_client

KEY = "pages_are_read"

ACTIVE_FOR_MS = 1_000
"""Lifetime of the signal: a user who scrolls requests the next page within it."""

SEND_INTERVAL_SECONDS = 0.2
CHECK_INTERVAL_SECONDS = 0.1
RETRY_DELAY_SECONDS = 5.0
"""Time for which Redis is not queried again after a failed request."""


@dataclass(slots=True)
class _LastAnswer:
    checked_at: float = 0.0
    is_active: bool = False


_last = _LastAnswer()


def note_page_read() -> None:
    """Signal that a page is being read, without delaying the reader."""
    _sender.notify()


def are_pages_being_read() -> bool:
    """Return whether any process read a page within the last second; True if Redis is unavailable."""
    now = time.monotonic()
    if now - _last.checked_at >= CHECK_INTERVAL_SECONDS:
        try:
            _last.is_active = bool(redis_client().exists(KEY))
        except StoreUnavailable:
            _last.is_active, now = True, now + RETRY_DELAY_SECONDS
        _last.checked_at = now
    return _last.is_active


def _send() -> None:
    redis_client().set(KEY, 1, px=ACTIVE_FOR_MS)


_sender = BackgroundSender(_send, name="send-foreground", interval_seconds=SEND_INTERVAL_SECONDS)
