"""Postgres's clock, and this process's compared with it.

A process whose clock is off by more than five seconds refuses to write: 5 s of skew and
4 s of retries must stay below the 10 s that a purge's stamps lie back. What people write is
stamped by the process's own clock, which is compared each minute. What jobs write is stamped
by Postgres's, which is compared at every stamp: after a failover it may have jumped.
"""

from __future__ import annotations

import datetime as dt
import os
import socket
import threading
import time
from collections.abc import Callable

from django.db import connection

from chatstore.domain.errors import WriteRefused

ALLOWED_SKEW_US = 5_000_000
COMPARE_EVERY_SECONDS = 60.0
STEP_US = 500_000
"""A wall clock that moved by this much against the monotonic one is compared at once."""


def postgres_now_us() -> int:
    """Postgres's `clock_timestamp()` in µs since 1970: it moves on within a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        row = cursor.fetchone()
    return int(row[0])


def postgres_now() -> dt.datetime:
    """The same, in UTC."""
    return dt.datetime.fromtimestamp(postgres_now_us() / 1_000_000, tz=dt.UTC)


def wall_clock_us() -> int:
    """This process's own clock in µs since 1970."""
    return time.time_ns() // 1000


class _Comparison:
    """When this process last found its clock right, by both of its clocks."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.lock = threading.Lock()
        self.at_monotonic_us: int | None = None
        self.at_wall_us = 0

    def still_holds(self, wall_us: int) -> bool:
        if self.at_monotonic_us is None:
            return False
        elapsed = time.monotonic_ns() // 1000 - self.at_monotonic_us
        moved = wall_us - self.at_wall_us
        return elapsed < COMPARE_EVERY_SECONDS * 1_000_000 and abs(moved - elapsed) < STEP_US

    def note(self, wall_us: int) -> None:
        self.at_monotonic_us = time.monotonic_ns() // 1000
        self.at_wall_us = wall_us


_comparison = _Comparison()
os.register_at_fork(after_in_child=_comparison.forget)


def check_clock(*, wall_clock: Callable[[], int] = wall_clock_us) -> None:
    """Compare this process's clock (µs) with Postgres's, at the first call and each minute.

    Raises `WriteRefused`, with the process and the difference, beyond five seconds; the
    next call then compares again, so that a clock that was put right is believed at once.
    """
    if _comparison.still_holds(wall_clock()):
        return
    with _comparison.lock:
        before = wall_clock()
        postgres = postgres_now_us()
        after = wall_clock()
        skew = measure_skew(before, postgres, after)
        if abs(skew) > ALLOWED_SKEW_US:
            raise _refuse(skew)
        _comparison.note(after)


def check_stamp(stamp_us: int, *, asked_us: int) -> None:
    """Compare a stamp that Postgres gave with this process's clock, which said `asked_us` before it was asked.

    Raises `WriteRefused` beyond five seconds: nothing may be written with that stamp.
    """
    skew = measure_skew(asked_us, stamp_us, wall_clock_us())
    if abs(skew) > ALLOWED_SKEW_US:
        raise _refuse(skew)


def stamp_now_us() -> int:
    """`postgres_now_us()` for what is stamped with it. Raises `WriteRefused` when this process's clock disagrees."""
    asked_us = wall_clock_us()
    stamp_us = postgres_now_us()
    check_stamp(stamp_us, asked_us=asked_us)
    return stamp_us


def _refuse(skew: int) -> WriteRefused:
    _comparison.at_monotonic_us = None
    return WriteRefused(
        f"The clock of process {os.getpid()} on {socket.gethostname()} is "
        f"{abs(skew) / 1e6:.1f} s {'ahead of' if skew > 0 else 'behind'} Postgres's; "
        "it writes nothing until that is put right."
    )


def measure_skew(before: int, postgres: int, after: int) -> int:
    """By how much a clock is ahead of Postgres's for certain, in its own unit; negative: behind.

    Postgres was asked between `before` and `after`: what that interval can explain is no skew.
    """
    if postgres < before:
        return before - postgres
    if postgres > after:
        return after - postgres
    return 0
