"""A clock that a test moves by hand, in the place of the `time` that a module imported."""

from __future__ import annotations


class FakeTime:
    """Stands in for the module `time`: sleeping moves the clock, and nothing else does."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
