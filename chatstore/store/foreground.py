"""Whether people are reading pages just now: jobs that can wait then leave the store to them.

Every process that reads pages says so in Redis, at most five times a second and from a thread
of its own, so that no page waits for it.
"""

from __future__ import annotations

import os
import threading
import time

from chatstore.domain.errors import StoreUnavailable
from chatstore.store.redis import redis_client

KEY = "pages_are_read"

SAID_FOR_MS = 1_000
"""How long one reading counts: somebody who scrolls asks for the next page within it."""

SAY_AGAIN_SECONDS = 0.2
ASK_AGAIN_SECONDS = 0.1
SILENT_SECONDS = 5.0
"""After Redis did not answer."""


class _Process:
    """What this process has said and heard; a fork begins anew."""

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
    """Somebody reads a page; costs the reader nothing."""
    _process.was_read.set()
    if _process.teller is None:
        _process.teller = threading.Thread(target=_tell, args=(_process.was_read,), name="tell-readers", daemon=True)
        _process.teller.start()


def is_anybody_reading() -> bool:
    """Whether a page was read anywhere within the last second; yes, when it cannot be known."""
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
