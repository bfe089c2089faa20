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

SAID_FOR_MS = 1_000
"""Lifetime of the signal: a user who scrolls requests the next page within it."""

SAY_AGAIN_SECONDS = 0.2
ASK_AGAIN_SECONDS = 0.1
SILENT_SECONDS = 5.0
"""Pause after a failed request to Redis."""


class _Process:
    """This process's last signal and the last answer it read; reset after a fork."""

    def __init__(self) -> None:
        self.was_read = threading.Event()
        self.teller: threading.Thread | None = None
        self.heard_at = 0.0
        self.heard = False


_process = _Process()


def _begin_anew() -> None:
    _process.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_begin_anew)


def note_page_read() -> None:
    """Signal that a page is being read, without delaying the reader."""
    _process.was_read.set()
    if _process.teller is None:
        _process.teller = threading.Thread(target=_tell, args=(_process.was_read,), name="tell-readers", daemon=True)
        _process.teller.start()


def is_anybody_reading() -> bool:
    """Return whether any process read a page within the last second; True if Redis is unavailable."""
    now = time.monotonic()
    if now - _process.heard_at >= ASK_AGAIN_SECONDS:
        try:
            _process.heard = bool(redis_client().exists(KEY))
        except StoreUnavailable:
            _process.heard, now = True, now + SILENT_SECONDS
        _process.heard_at = now
    return _process.heard


def _tell(was_read: threading.Event) -> None:
    while True:
        was_read.wait()
        was_read.clear()
        try:
            redis_client().set(KEY, 1, px=SAID_FOR_MS)
        except StoreUnavailable:
            time.sleep(SILENT_SECONDS)
        time.sleep(SAY_AGAIN_SECONDS)
