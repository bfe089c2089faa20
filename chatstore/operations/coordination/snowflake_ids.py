"""New message ids, made with a worker number that this process leases, so that no id is issued twice.

The lease is renewed when half of it has passed. An id is only used if the lease was still valid after it was
made; a process that was suspended in the meantime discards it and takes a new lease.
"""

from __future__ import annotations

import os
import threading
import time
import uuid

from django.db import connection

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.snowflakes import WORKERS, SnowflakeMaker
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import WorkerLease

LEASE_SECONDS = 300.0
REUSE_DELAY_SECONDS = 15.0
"""An expired number is not reused for this long: the clock of its last owner may be 5 s off, and its ids may
have borrowed 5 s from the future.
"""

_MAX_ATTEMPTS = 20
_TABLE = WorkerLease._meta.db_table
_UNTIL = "clock_timestamp() + make_interval(secs => %s::double precision)"
_REUSABLE_BEFORE = "clock_timestamp() - make_interval(secs => %s::double precision)"
_LEASE = (
    f"INSERT INTO {_TABLE} (worker, token, lease_until) "
    f"SELECT n, %s, {_UNTIL} FROM generate_series(0, {WORKERS - 1}) n WHERE NOT EXISTS "
    f"(SELECT 1 FROM {_TABLE} taken WHERE taken.worker = n AND taken.lease_until >= {_REUSABLE_BEFORE}) "
    "ORDER BY random() LIMIT 1 "
    "ON CONFLICT (worker) DO UPDATE SET token = EXCLUDED.token, lease_until = EXCLUDED.lease_until "
    f"WHERE {_TABLE}.lease_until < {_REUSABLE_BEFORE} RETURNING worker"
)
_RENEW = f"UPDATE {_TABLE} SET lease_until = {_UNTIL} WHERE worker = %s AND token = %s RETURNING worker"


class LeasedMaker:
    """Creates ids under its own lease; one per process is enough."""

    def __init__(self, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._seconds = lease_seconds
        self._lock = threading.Lock()
        self._maker: SnowflakeMaker | None = None
        self.worker = -1
        self._token = uuid.uuid4()
        self._until = 0.0

    def make(self) -> int:
        """Return a new id.

        Raises `WriteRefused` if the clock was set far back, `StoreUnavailable` if no worker number is free.
        """
        with self._lock:
            while True:
                maker = self._ensure_maker()
                made = maker.make()
                if time.monotonic() < self._until:
                    return made

    def _ensure_maker(self) -> SnowflakeMaker:
        left = self._until - time.monotonic()
        if self._maker is None or (left < self._seconds / 2 and not self._renew()):
            self._maker = self._lease()
        return self._maker

    def _renew(self) -> bool:
        requested_at = time.monotonic()
        # The number may still be free, but an expired lease is not revived: its next owner must be able to rely on
        # the reuse delay.
        if requested_at >= self._until or not _run(_RENEW, (self._seconds, self.worker, self._token)):
            return False
        self._until = requested_at + self._seconds
        return True

    def _lease(self) -> SnowflakeMaker:
        token = uuid.uuid4()
        for _attempt in range(_MAX_ATTEMPTS):
            requested_at = time.monotonic()
            rows = _run(_LEASE, (token, self._seconds, REUSE_DELAY_SECONDS, REUSE_DELAY_SECONDS))
            if rows:
                self.worker, self._token, self._until = rows[0][0], token, requested_at + self._seconds
                return SnowflakeMaker(self.worker, clock=_wall_clock_ms)
        raise StoreUnavailable(_("All %(count)s worker numbers for new IDs are in use.", count=WORKERS))


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def _run(sql: str, params: tuple[int | float | str | uuid.UUID | None, ...]) -> list[tuple[int]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


class _Process:
    maker: LeasedMaker | None = None

    def forget(self) -> None:
        self.maker = None


_process = _Process()
os.register_at_fork(after_in_child=_process.forget)


def new_message_id() -> int:
    """Return a globally unique id for the current time, from this process's leased worker number."""
    if _process.maker is None:
        _process.maker = LeasedMaker()
    return _process.maker.make()
