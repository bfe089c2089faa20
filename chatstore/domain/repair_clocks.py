"""The repair clock: how near a table is to the moment from which a delete may be undone by a replica that missed it.

Cassandra forgets a delete when gc_grace is over. By then every replica must have heard of it, which a
full repair sees to that began after it. So the clock runs from the first delete that no such repair covers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

AMBER_AT = 0.8
"""Of gc_grace: what is left is one night, on a table with the two days of `messages`."""

RED_AT = 1.0


class ClockState(StrEnum):
    """green: covered, or time enough. amber: raise gc_grace, or repair. red: it may have happened."""

    GREEN = "green"
    AMBER = "amber"
    RED = "red"


@dataclass(frozen=True, slots=True)
class RepairClock:
    """Of one table, read at `now`.

    began_at: the oldest of all nodes' last full repairs, each by when it began; None: some node's ranges
    were not repaired in the 30 days that Cassandra remembers. per_node: the same by node.
    counts_from: what the clock runs from; None: nothing was deleted that is not covered.
    gc_grace_seconds, normal_gc_grace_seconds: as it is, as it is declared.
    is_deleted_from: whether anything is ever deleted there. waits_at_red: whether purges do.
    """

    table: str
    now: dt.datetime
    began_at: dt.datetime | None
    per_node: Mapping[str, dt.datetime | None]
    counts_from: dt.datetime | None
    gc_grace_seconds: int
    normal_gc_grace_seconds: int
    is_deleted_from: bool = True
    waits_at_red: bool = False
    source: str = "repair history"

    @property
    def age_seconds(self) -> float:
        """Since the first delete that is not covered; 0 when there is none."""
        return 0.0 if self.counts_from is None else max(0.0, (self.now - self.counts_from).total_seconds())

    @property
    def share(self) -> float:
        """How much of gc_grace is used up: 1 and more is too late."""
        return self.age_seconds / max(1, self.gc_grace_seconds)

    @property
    def state(self) -> ClockState:
        """A table for which nobody waits never turns red: what comes back there harms nobody."""
        if self.share >= RED_AT and self.waits_at_red:
            return ClockState.RED
        return ClockState.AMBER if self.share >= AMBER_AT else ClockState.GREEN

    @property
    def seconds_left(self) -> float:
        """Of gc_grace; below 0: it is over."""
        return self.gc_grace_seconds - self.age_seconds

    @property
    def hours_left(self) -> float:
        return self.seconds_left / 3_600

    @property
    def is_raised(self) -> bool:
        """Whether gc_grace is longer than it is declared."""
        return self.gc_grace_seconds > self.normal_gc_grace_seconds

    @property
    def would_be_green(self) -> bool:
        """Also with the declared gc_grace."""
        return self.age_seconds < AMBER_AT * self.normal_gc_grace_seconds
