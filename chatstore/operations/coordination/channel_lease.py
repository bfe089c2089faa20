"""A lease on channels, kept up by a thread of its own and checked before every write.

Renewing keeps a slow job's channels. Checking stops a job that was suspended for longer than its
lease. Neither can recall a statement that was sent a moment too late, so whoever writes under a
lease also sees to it that a late statement does no harm.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from chatstore.domain.errors import ChatstoreError
from chatstore.operations.coordination.channel_lock import renew_holds
from chatstore.operations.coordination.leases import renewed

RENEWALS_IN_A_LEASE = 4
"""A renewal may fail, or come late, and the lease still holds."""


class ChannelLost(ChatstoreError):
    """The lease expired and another job took a channel; nothing may be written there."""


class ChannelLease:
    """A job's lease on channels that it has just locked."""

    def __init__(self, channel_ids: Collection[int], *, job: str, seconds: float) -> None:
        self.channel_ids = frozenset(channel_ids)
        self._job = job
        self._seconds = seconds
        self._lost: frozenset[int] = frozenset()
        self._confirmed_at = _now()

    @contextmanager
    def kept_up(self) -> Iterator[None]:
        """Renew the lease until the context ends."""
        with renewed(self._renew, every_seconds=self._seconds / RENEWALS_IN_A_LEASE):
            yield

    def check(self) -> None:
        """Raise `ChannelLost` if another job may have a channel by now; asks Postgres only in doubt."""
        if self._lost or _now() - self._confirmed_at > self._seconds / 2:
            self.confirm()

    def confirm(self) -> None:
        """Renew, and raise `ChannelLost` unless no other job has had a channel since it was locked."""
        self._renew()
        if self._lost:
            named = ", ".join(map(str, sorted(self._lost)))
            raise ChannelLost(f"channel {named} was taken over by another job; import it again")

    def _renew(self) -> None:
        asked_at = _now()
        kept = renew_holds(self.channel_ids, job=self._job, lease_seconds=self._seconds)
        # A channel that was lost once stays lost, even if this job should lock it again.
        self._lost |= self.channel_ids - kept
        if not self._lost:
            self._confirmed_at = asked_at


def _now() -> float:
    """Seconds that go on while the machine is suspended, unlike `time.monotonic()` on Linux."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)
