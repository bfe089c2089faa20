"""Keeps a purge's statements per second under its limit, so that people's reads come first."""

from __future__ import annotations

import time


class Pace:
    """A token bucket of one process: at most `per_second` statements, a second's worth at once.

    Halved when the store times out; back to the full rate by a tenth each second.
    """

    def __init__(self, per_second: float) -> None:
        self._limit = per_second
        self._rate = per_second
        self._left = per_second
        self._at = time.monotonic()

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

    def halve(self) -> None:
        """Slows down by half, to a hundredth of the limit at the least."""
        self._rate = max(self._limit / 100, self._rate / 2)

    def _refill(self) -> None:
        now = time.monotonic()
        passed, self._at = now - self._at, now
        self._rate = min(self._limit, self._rate + passed * self._limit / 10)
        self._left = min(self._rate, self._left + passed * self._rate)
