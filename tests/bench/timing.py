"""Alternating runs and their medians, so that both sides run under the same conditions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Comparison:
    """Median seconds of both sides over alternating runs."""

    ours: float
    theirs: float
    runs: int

    @property
    def speed(self) -> float:
        """Speed of our side as a multiple of the baseline's."""
        return self.theirs / self.ours

    @property
    def time(self) -> float:
        """Duration of our side as a multiple of the baseline's."""
        return self.ours / self.theirs


def seconds_of(function: Callable[[], object]) -> float:
    """Return the seconds that one call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def alternate(
    ours: Callable[[], float],
    theirs: Callable[[], float],
    *,
    runs: int,
    before: Callable[[], object] = lambda: None,
) -> Comparison:
    """Run both sides in turn, in alternating order; each returns its own seconds. `before` precedes every call."""
    taken: tuple[list[float], list[float]] = ([], [])
    for run in range(runs):
        for side in (0, 1) if run % 2 == 0 else (1, 0):
            before()
            taken[side].append((ours, theirs)[side]())
    return Comparison(statistics.median(taken[0]), statistics.median(taken[1]), runs)
