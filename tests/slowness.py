"""How slow this machine is, for limits of time: those of a machine that does nothing else hold on few others."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from chatstore.models.users import User

ROUNDS = 30

REFERENCE_READS = 3
REFERENCE_SECONDS = 0.002
"""What `REFERENCE_READS` reads of an account take on the machine of the limits."""

MAX_SLOWNESS = 2.5


def reference_seconds(work: Callable[[], object]) -> float:
    """Return the processor time that the work takes in this thread, in seconds on the machine of the limits.

    The work alternates with reads of an account by Django's models, and what counts is how many times as long it takes
    as these: like a small request they are half Python and half system calls, which a busy machine slows more. (A
    template as the reference made the same poll 1.0 to 2.9 times as long, these make it 1.3 to 1.6 times.)
    """
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for taken, part in zip(took, (_read_accounts, work), strict=True):
            began = time.thread_time()
            part()
            taken.append(time.thread_time() - began)
    reference, measured = map(statistics.median, took)
    return measured / reference * REFERENCE_SECONDS


def _read_accounts() -> None:
    for _ in range(REFERENCE_READS):
        User.objects.select_related("preferences").filter(pk=0).first()


def slowness_of(measured: float, reference: float) -> float:
    """Return by how much a limit grows: at least 1, at most `MAX_SLOWNESS` times.

    measured: how long fixed work takes now; reference: on the machine of the limits.
    """
    return min(max(1.0, measured / reference), MAX_SLOWNESS)
