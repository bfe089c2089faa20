"""Postgres's clock, and the comparison of this process's clock with it.

A process whose clock is off by more than five seconds refuses to write: 5 s of skew plus 4 s of retries
must stay below the 10 s by which a purge backdates its stamps. Writes of users are stamped by the clock of
the process, which is compared every minute. Writes of jobs are stamped by Postgres's clock, which is
compared at every stamp, because it may jump in a failover.
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
from chatstore.domain.texts import Param
from chatstore.domain.texts import gettext_lazy as _

ALLOWED_SKEW_US = 5_000_000
CLOCK_CHECK_INTERVAL_SECONDS = 60.0
CLOCK_STEP_US = 500_000
"""Change of the wall clock relative to the monotonic clock after which it is checked at once."""


def postgres_now_us() -> int:
    """Return Postgres's `clock_timestamp()` in µs since 1970; it advances within a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        row = cursor.fetchone()
    return int(row[0])


def postgres_now() -> dt.datetime:
    """Return Postgres's `clock_timestamp()` as an aware datetime in UTC."""
    return dt.datetime.fromtimestamp(postgres_now_us() / 1_000_000, tz=dt.UTC)


def wall_clock_us() -> int:
    """Return this process's own clock in µs since 1970."""
    return time.time_ns() // 1000


class _ClockCheck:
    """Time of the last successful comparison, on both clocks of this process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.lock = threading.Lock()
        self.at_monotonic_us: int | None = None
        self.at_wall_us = 0

    def is_fresh(self, wall_us: int) -> bool:
        if self.at_monotonic_us is None:
            return False
        elapsed = time.monotonic_ns() // 1000 - self.at_monotonic_us
        moved = wall_us - self.at_wall_us
        return elapsed < CLOCK_CHECK_INTERVAL_SECONDS * 1_000_000 and abs(moved - elapsed) < CLOCK_STEP_US

    def note(self, wall_us: int) -> None:
        self.at_monotonic_us = time.monotonic_ns() // 1000
        self.at_wall_us = wall_us


_clock_check = _ClockCheck()
os.register_at_fork(after_in_child=_clock_check.forget)


def check_clock(*, wall_clock: Callable[[], int] = wall_clock_us) -> None:
    """Compare this process's clock (µs) with Postgres's, at the first call and then once a minute.

    Raises `WriteRefused`, with the process and the difference, if they differ by more than five seconds. The
    next call then compares again, so that a corrected clock is accepted at once.
    """
    if _clock_check.is_fresh(wall_clock()):
        return
    with _clock_check.lock:
        before = wall_clock()
        postgres = postgres_now_us()
        after = wall_clock()
        skew = measure_skew(before, postgres, after)
        if abs(skew) > ALLOWED_SKEW_US:
            raise _refuse(skew)
        _clock_check.note(after)


def check_stamp(stamp_us: int, *, queried_us: int) -> None:
    """Compare a stamp from Postgres with this process's clock, which was at `queried_us` before the query.

    Raises `WriteRefused` beyond five seconds: nothing may be written with that stamp.
    """
    skew = measure_skew(queried_us, stamp_us, wall_clock_us())
    if abs(skew) > ALLOWED_SKEW_US:
        raise _refuse(skew)


def stamp_now_us() -> int:
    """Return `postgres_now_us()` as a stamp. Raises `WriteRefused` if this process's clock disagrees."""
    queried_us = wall_clock_us()
    stamp_us = postgres_now_us()
    check_stamp(stamp_us, queried_us=queried_us)
    return stamp_us


def _refuse(skew: int) -> WriteRefused:
    _clock_check.at_monotonic_us = None
    params: dict[str, Param] = {
        "process": str(os.getpid()),
        "host": socket.gethostname(),
        "seconds": round(abs(skew) / 1e6, 1),
    }
    if skew > 0:
        return WriteRefused(
            _(
                "The clock of process %(process)s on %(host)s is %(seconds)s s ahead of Postgres's; "
                "writes are refused until it is corrected.",
                **params,
            )
        )
    return WriteRefused(
        _(
            "The clock of process %(process)s on %(host)s is %(seconds)s s behind Postgres's; "
            "writes are refused until it is corrected.",
            **params,
        )
    )


def measure_skew(before: int, postgres: int, after: int) -> int:
    """Return the minimum by which a clock is ahead of Postgres's, in its own unit; negative: behind.

    Postgres was queried between `before` and `after`; a difference within that interval is not skew.
    """
    if postgres < before:
        return before - postgres
    if postgres > after:
        return after - postgres
    return 0
