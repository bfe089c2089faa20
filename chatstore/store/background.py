"""A background thread that sends what a process has collected, so that no request waits for the server."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from chatstore.domain.errors import StoreUnavailable

RETRY_DELAY_SECONDS = 5.0
"""Pause after a failed request."""


class BackgroundSender:
    """Calls `send` once per interval while there is something to send, also in children of a fork.

    send: sends what was collected. If it raises `StoreUnavailable`, it is called again later; what it did not send it
    has to keep.
    """

    def __init__(self, send: Callable[[], object], *, name: str, interval_seconds: float = 1.0) -> None:
        self._send = send
        self._name = name
        self._interval_seconds = interval_seconds
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._has_unsent = threading.Event()
        self._thread: threading.Thread | None = None

    def notify(self) -> None:
        """Report that there is something to send; returns at once."""
        self._has_unsent.set()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._send_loop, name=self._name, daemon=True)
                self._thread.start()

    def _send_loop(self) -> None:
        while True:
            self._has_unsent.wait()
            self._has_unsent.clear()
            try:
                self._send()
            except StoreUnavailable:
                self._has_unsent.set()
                time.sleep(RETRY_DELAY_SECONDS)
            time.sleep(self._interval_seconds)
