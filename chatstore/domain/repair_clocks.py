"""Repair clock: how close a table is to the time at which a replica that missed a delete could resurrect its data.

Cassandra may drop a tombstone after gc_grace. By then every replica must have received the delete; a full repair that
began after it ensures this. So the clock runs from the first delete that no such repair covers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

WARNING_AT = 0.8
"""Share of gc_grace; what remains is one night, with the two days of `messages`."""

CRITICAL_AT = 1.0


class ClockState(StrEnum):
    """ok: covered, or time enough. warning: raise gc_grace or repair. critical: deleted data may have come back."""

    OK = "ok"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class RepairClock:
    """The clock of one table, read at `now`.

    began_at: the oldest of all nodes' latest full repairs, by start time; None if some node's ranges were not repaired
    in the 30 days of Cassandra's repair history. per_node: the same by node. counts_from: start of the clock; None if
    every delete is covered. gc_grace_seconds, normal_gc_grace_seconds: the current and the declared value.
    is_deleted_from: whether anything is ever deleted from the table. blocks_purges_when_critical: whether purges
    are blocked once the clock is critical.
    """

    table: str
    now: dt.datetime
    began_at: dt.datetime | None
    per_node: Mapping[str, dt.datetime | None]
    counts_from: dt.datetime | None
    gc_grace_seconds: int
    normal_gc_grace_seconds: int
    is_deleted_from: bool = True
    blocks_purges_when_critical: bool = False
    source: str = "repair history"

    @property
    def age_seconds(self) -> float:
        """Seconds since the first delete that is not covered; 0 if there is none."""
        return 0.0 if self.counts_from is None else max(0.0, (self.now - self.counts_from).total_seconds())

    @property
    def share(self) -> float:
        """The used share of gc_grace: 1 or more is too late."""
        return self.age_seconds / max(1, self.gc_grace_seconds)

    @property
    def state(self) -> ClockState:
        """The state. A table that blocks no purges never becomes critical: resurrected data does no harm there."""
        if self.share >= CRITICAL_AT and self.blocks_purges_when_critical:
            return ClockState.CRITICAL
        return ClockState.WARNING if self.share >= WARNING_AT else ClockState.OK

    @property
    def seconds_left(self) -> float:
        """Seconds left of gc_grace; negative once it has passed."""
        return self.gc_grace_seconds - self.age_seconds

    @property
    def hours_left(self) -> float:
        return self.seconds_left / 3_600

    @property
    def is_raised(self) -> bool:
        """Return whether gc_grace is longer than declared."""
        return self.gc_grace_seconds > self.normal_gc_grace_seconds

    @property
    def would_be_ok(self) -> bool:
        """Return whether the clock would be ok with the declared gc_grace."""
        return self.age_seconds < WARNING_AT * self.normal_gc_grace_seconds
