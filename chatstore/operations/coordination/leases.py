"""Leases that are renewed while work goes on, from a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import Error, connection


@contextmanager
def renewed(renew: Callable[[], object], *, every_seconds: float) -> Iterator[None]:
    """Calls `renew` again and again, on a connection of its own, until the context ends."""
    stop = threading.Event()
    thread = threading.Thread(target=_renew_until, args=(renew, every_seconds, stop), name="renew-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _renew_until(renew: Callable[[], object], every_seconds: float, stop: threading.Event) -> None:
    try:
        while not stop.wait(every_seconds):
            try:
                renew()
            except Error:
                # Postgres is away for a moment; the lease runs on, and the next round tries again.
                connection.close()
    finally:
        connection.close()
