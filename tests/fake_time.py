"""A manually controlled clock that replaces the `time` module imported by another module."""

from __future__ import annotations


class FakeTime:
    """Replacement for the module `time`: only `sleep` moves the clock."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
