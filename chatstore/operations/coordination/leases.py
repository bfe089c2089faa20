"""Renewal of leases by a background thread while work is in progress."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import Error, connection


@contextmanager
def renewed(renew: Callable[[], object], *, every_seconds: float) -> Iterator[None]:
    """Call `renew` periodically from a thread with its own connection, until the context ends."""
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
                # Postgres is briefly unavailable; the lease is still valid, and the next renewal tries again.
                connection.close()
    finally:
        connection.close()
