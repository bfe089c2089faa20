"""Lease on channels, renewed by its own thread and checked before every write.

Renewing keeps the channels of a slow job. Checking stops a job that was suspended for longer than its
lease. Neither can recall a statement that was sent just too late, so a writer under a lease must also
make sure that a late statement does no harm.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from chatstore.domain.errors import ChatstoreError
from chatstore.operations.coordination.channel_lock import renew_locks
from chatstore.operations.coordination.leases import renewed

RENEWALS_PER_LEASE = 4
"""The lease survives a renewal that fails or comes late."""


class ChannelLost(ChatstoreError):
    """Another job took a channel after the lease expired; nothing may be written there."""


class ChannelLease:
    """Lease of a job on channels that it has just locked."""

    def __init__(self, channel_ids: Collection[int], *, job: str, seconds: float) -> None:
        self.channel_ids = frozenset(channel_ids)
        self._job = job
        self._seconds = seconds
        self._lost: frozenset[int] = frozenset()
        self._confirmed_at = _now()

    @contextmanager
    def auto_renewed(self) -> Iterator[None]:
        """Renew the lease until the context ends."""
        with renewed(self._renew, every_seconds=self._seconds / RENEWALS_PER_LEASE):
            yield

    def check(self) -> None:
        """Raise `ChannelLost` if another job may have taken a channel; queries Postgres only when in doubt."""
        if self._lost or _now() - self._confirmed_at > self._seconds / 2:
            self.confirm()

    def confirm(self) -> None:
        """Renew the lease; raise `ChannelLost` if another job has had a channel since it was locked."""
        self._renew()
        if self._lost:
            named = ", ".join(map(str, sorted(self._lost)))
            raise ChannelLost(f"channel {named} was taken over by another job; import it again")

    def _renew(self) -> None:
        requested_at = _now()
        kept = renew_locks(self.channel_ids, job=self._job, lease_seconds=self._seconds)
        # A channel that was lost once stays lost, even if this job could lock it again.
        self._lost |= self.channel_ids - kept
        if not self._lost:
            self._confirmed_at = requested_at


def _now() -> float:
    """Seconds of a clock that includes suspension of the machine, unlike `time.monotonic()` on Linux."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)
