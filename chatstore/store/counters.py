"""Read-path counters, summed over all processes in Redis: informative only, nothing depends on them.

A process counts locally; a background thread sends the counts at most once a second, so that no page waits for Redis or
fails because of it. Counts that were not sent when a process ended are lost.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
import time

from chatstore.domain.milliseconds import time_at
from chatstore.store.background import BackgroundSender
from chatstore.store.redis import redis_client

HIDDEN = "authorless_hidden"
"""Rows without an author that pages left out, each time they did."""

HEALED = "authorless_healed"
"""Such rows that maintenance has deleted."""

SKIPPED = "buckets_skipped"
"""Buckets that a page skipped because the ledger marks them as empty."""

LATE = "deadline_reached"
"""Pages that were cut off at their deadline and returned with a cursor."""

ABORTED = "aborted_by_tombstones"
"""Reads that Cassandra aborted because of tombstones; they are retried in halves."""

NAMES = (HIDDEN, HEALED, SKIPPED, LATE, ABORTED)

KEY = "read_path_counters"
_SINCE = "since"


class _Process:
    """Counts of this process that were not sent yet; reset after a fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sending = threading.Lock()
        self.unsent: dict[str, int] = {}


_process = _Process()
os.register_at_fork(after_in_child=_process.__init__)  # type: ignore[misc]


def count(name: str, number: int = 1) -> None:
    """Add to one of `NAMES`, without delaying the reader."""
    if number <= 0:
        return
    with _process.lock:
        _process.unsent[name] = _process.unsent.get(name, 0) + number
    _sender.notify()


def send_counts() -> None:
    """Send this process's counts. Raises `StoreUnavailable`; nothing is lost then.

    A count that the server applied although its response was lost is sent, and counted, twice.
    """
    with _process.sending:
        with _process.lock:
            unsent, _process.unsent = _process.unsent, {}
        if not unsent:
            return
        try:
            client = redis_client()
            client.hsetnx(KEY, _SINCE, str(time.time_ns() // 1_000_000))
            while unsent:
                name = next(iter(unsent))
                client.hincrby(KEY, name, unsent[name])
                del unsent[name]
        finally:
            with _process.lock:
                for name, number in unsent.items():
                    _process.unsent[name] = _process.unsent.get(name, 0) + number


def read_all() -> dict[str, int]:
    """Return every counter's total since `counting_since()`. Raises `StoreUnavailable`."""
    kept = redis_client().hgetall(KEY)
    return {name: int(kept.get(name, 0)) for name in NAMES}


def counting_since() -> dt.datetime | None:
    """Return when the first of the totals was counted; None if nothing was. Raises `StoreUnavailable`."""
    since = redis_client().hget(KEY, _SINCE)
    return None if since is None else time_at(int(since))


_sender = BackgroundSender(send_counts, name="send-counters")
