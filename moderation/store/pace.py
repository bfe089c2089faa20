"""Keeps a purge out of people's way: so many statements a second, and a rest while they read."""

from __future__ import annotations

import time

from django.conf import settings

from chatstore.store.foreground import is_anybody_reading

LONGEST_WORK_SECONDS = 1.0
"""What counts as work between two rests at most: longer was waiting for Postgres, or for a node.

A page of a bucket's ids takes up to half a second while people read; with 0.2 the rest after it was
too short for them, 1.95 against 1.58 of the idle p95.
"""


class Pace:
    """A token bucket of one worker: at most `per_second` statements, a second's worth at once.

    Halved when the store times out; back to the full rate by a tenth each second.
    """

    def __init__(self, per_second: float) -> None:
        self._limit = per_second
        self._rate = per_second
        self._left = per_second
        self._at = time.monotonic()
        self._rested_at = self._at

    @property
    def rate(self) -> float:
        """Statements per second that are allowed at the moment."""
        return self._rate

    def wait(self, statements: int) -> None:
        """Waits until so many statements may be sent."""
        self._refill()
        self._left -= statements
        if self._left < 0:
            time.sleep(-self._left / self._rate)

    def rest(self) -> None:
        """While anybody reads pages: rests `PURGE_REST` times as long as was worked since the last rest.

        For what can wait; called after each page of a read and before each batch.
        """
        if is_anybody_reading():
            worked = time.monotonic() - self._rested_at
            time.sleep(min(worked, LONGEST_WORK_SECONDS) * settings.PURGE_REST)
        self.begin()

    def begin(self) -> None:
        """What has passed since the last rest was no work."""
        self._rested_at = time.monotonic()

    def wait_and_rest(self, statements: int) -> None:
        """Both, for writes that can wait."""
        self.rest()
        self.wait(statements)

    def halve(self) -> None:
        """Slows down by half, to a hundredth of the limit at the least."""
        self._rate = max(self._limit / 100, self._rate / 2)

    def _refill(self) -> None:
        now = time.monotonic()
        passed, self._at = now - self._at, now
        self._rate = min(self._limit, self._rate + passed * self._limit / 10)
        self._left = min(self._rate, self._left + passed * self._rate)
