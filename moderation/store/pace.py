"""Throttling of purges: a limit of statements per second, which all processes share, and pauses while users read."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings

from chatstore.store.foreground import are_pages_being_read

LONGEST_WORK_SECONDS = 1.0
"""Maximum time between two pauses that counts as work. Longer intervals were spent waiting for Postgres or a node.

A page of a bucket's ids takes up to half a second while users read. With 0.2, the pause after it was too short for
them: 1.95 times the idle p95 instead of 1.58.
"""


SHARE_SECONDS = 1.0
"""Interval at which a process counts how many share its limit."""


class Pace:
    """Token bucket of one process: its share of `per_second` statements, with bursts of one second's worth.

    workers: returns the number of processes that share the limit now. The rate is halved when the store times out, and
    recovers by a tenth of the limit each second.
    """

    def __init__(self, per_second: float, *, workers: Callable[[], int] = lambda: 1) -> None:
        self._per_second = per_second
        self._workers = workers
        self._limit = per_second
        self._rate = per_second
        self._left = per_second
        self._at = time.monotonic()
        self._shared_at = self._at - SHARE_SECONDS
        self._paused_at = self._at

    @property
    def rate(self) -> float:
        """Current limit in statements per second."""
        return self._rate

    def wait(self, statements: int) -> None:
        """Wait until the given number of statements may be sent."""
        self._refill()
        self._left -= statements
        if self._left < 0:
            time.sleep(-self._left / self._rate)

    def throttle(self) -> None:
        """Pause for `PURGE_THROTTLE_FACTOR` times the time worked since the last pause, if users read pages.

        For background work. Called after each page of a read and before each batch.
        """
        if are_pages_being_read():
            worked = time.monotonic() - self._paused_at
            time.sleep(min(worked, LONGEST_WORK_SECONDS) * settings.PURGE_THROTTLE_FACTOR)
        self.begin()

    def begin(self) -> None:
        """Don't count the time since the last pause as work."""
        self._paused_at = time.monotonic()

    def wait_and_throttle(self, statements: int) -> None:
        """Pause and wait, for background writes."""
        self.throttle()
        self.wait(statements)

    def halve(self) -> None:
        """Halve the rate, down to a hundredth of the limit."""
        self._rate = max(self._limit / 100, self._rate / 2)

    def _share(self, now: float) -> None:
        self._shared_at = now
        limit = self._per_second / max(1, self._workers())
        self._rate *= limit / self._limit
        self._limit = limit

    def _refill(self) -> None:
        now = time.monotonic()
        if now - self._shared_at >= SHARE_SECONDS:
            self._share(now)
        passed, self._at = now - self._at, now
        self._rate = min(self._limit, self._rate + passed * self._limit / 10)
        self._left = min(self._rate, self._left + passed * self._rate)
