"""Signal that users are reading pages, on which background jobs throttle themselves.

Every process that reads pages refreshes a key in Redis, at most five times a second and from a background thread, so
that no page waits for it.
"""

from __future__ import annotations

import os
import threading
import time

from chatstore.domain.errors import StoreUnavailable
from chatstore.store.redis import redis_client

KEY = "pages_are_read"

ACTIVE_FOR_MS = 1_000
"""Lifetime of the signal: a user who scrolls requests the next page within it."""

SEND_INTERVAL_SECONDS = 0.2
CHECK_INTERVAL_SECONDS = 0.1
RETRY_DELAY_SECONDS = 5.0
"""Pause after a failed request to Redis."""


class _Process:
    """This process's last signal and the last answer it read; reset after a fork."""

    def __init__(self) -> None:
        self.was_read = threading.Event()
        self.sender: threading.Thread | None = None
        self.checked_at = 0.0
        self.is_active = False


_process = _Process()


def _reset_after_fork() -> None:
    _process.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_reset_after_fork)


def note_page_read() -> None:
    """Signal that a page is being read, without delaying the reader."""
    _process.was_read.set()
    if _process.sender is None:
        _process.sender = threading.Thread(
            target=_send_loop, args=(_process.was_read,), name="send-foreground", daemon=True
        )
        _process.sender.start()


def are_pages_being_read() -> bool:
    """Return whether any process read a page within the last second; True if Redis is unavailable."""
    now = time.monotonic()
    if now - _process.checked_at >= CHECK_INTERVAL_SECONDS:
        try:
            _process.is_active = bool(redis_client().exists(KEY))
        except StoreUnavailable:
            _process.is_active, now = True, now + RETRY_DELAY_SECONDS
        _process.checked_at = now
    return _process.is_active


def _send_loop(was_read: threading.Event) -> None:
    while True:
        was_read.wait()
        was_read.clear()
        try:
            redis_client().set(KEY, 1, px=ACTIVE_FOR_MS)
        except StoreUnavailable:
            time.sleep(RETRY_DELAY_SECONDS)
        time.sleep(SEND_INTERVAL_SECONDS)
