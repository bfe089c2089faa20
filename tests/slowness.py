"""How slow this machine is, for limits of processor time: those of one that does nothing else hold on few others."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from django.template import Context, Engine

ROUNDS = 20
REFERENCE_SECONDS = 0.002
"""What the fixed template takes on the machine of the limits."""

MAX_SLOWNESS = 2.5

_ROWS = [(number, f"row {number} of a fixed page") for number in range(100)]
_PAGE = Engine().from_string(
    '{% for number, text in rows %}<p id="r{{ number }}">{{ text|upper }} '
    '<a title="{{ text }}">{{ number|add:1 }}</a></p>{% endfor %}'
)


def median_seconds(work: Callable[[], object]) -> float:
    """Return the median of the processor time that the work takes in this thread."""
    taken = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        work()
        taken.append(time.thread_time() - began)
    return statistics.median(taken)


def measure_slowness() -> float:
    """Return how many times as long as on the machine of the limits work takes now, as `slowness_of`."""
    return slowness_of(median_seconds(lambda: _PAGE.render(Context({"rows": _ROWS}))), REFERENCE_SECONDS)


def slowness_of(measured: float, reference: float) -> float:
    """Return by how much a limit grows: at least 1, at most `MAX_SLOWNESS` times.

    measured: how long fixed work takes now; reference: on the machine of the limits.
    """
    return min(max(1.0, measured / reference), MAX_SLOWNESS)
