"""A round of repairs: every node repairs its primary ranges once. It may take several nights.

Nodes are repaired oldest first, so that a night continues where the one before ended, however that ended. Two nodes may
be repaired at the same time if no node has replicas of both: each compares its ranges with all of their replicas.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from chatstore.domain.schedules import Schedule

LONG_AGO = dt.datetime.min.replace(tzinfo=dt.UTC)

MAX_SLOTS = 400
"""More than a year of nights: a round that would take longer is not predicted."""


def oldest_first(repaired_at: Mapping[str, dt.datetime | None]) -> list[str]:
    """Return nodes by the time of their last repair; those that were never repaired come first."""
    return sorted(repaired_at, key=lambda node: (repaired_at[node] or LONG_AGO, node))


def replicas_by_node(ring: Iterable[tuple[int, str, Collection[str]]]) -> dict[str, frozenset[str]]:
    """Return the nodes that have replicas of each node's primary ranges, itself included.

    ring: (token, node, replicas of the range that ends at the token).
    """
    found: dict[str, set[str]] = {}
    for _token, node, replicas in ring:
        found.setdefault(node, {node}).update(replicas)
    return {node: frozenset(replicas) for node, replicas in found.items()}


def next_node(
    waiting: Sequence[str],
    running: Collection[str],
    replicas: Mapping[str, frozenset[str]],
    *,
    down: Collection[str] = (),
) -> str | None:
    """Return the first waiting node whose repair may start beside those that run; None if there is none.

    down: nodes that do not respond; a repair needs every replica. A node may be overtaken all night by nodes that share
    no replica with those that run. It is then the first of the next night, when none runs.
    """
    busy = frozenset().union(*(replicas[node] for node in running))
    blocked = busy.union(down)
    return next((node for node in waiting if replicas[node].isdisjoint(blocked)), None)


@dataclass(frozen=True, slots=True)
class RepairRound:
    """The current round, or the last one if it is complete.

    began_at: when it began. nodes, repaired: number of nodes, and of those that were repaired since. ends_at: when it
    will be complete at the current speed; None: unknown, or it is complete.
    """

    began_at: dt.datetime
    nodes: int
    repaired: int
    ends_at: dt.datetime | None = None

    @property
    def is_complete(self) -> bool:
        return self.repaired >= self.nodes


def count_repaired(repaired_at: Mapping[str, dt.datetime | None], since: dt.datetime) -> int:
    """Return the number of nodes that were repaired since the given time."""
    return sum(time is not None and time >= since for time in repaired_at.values())


def predict_end(
    seconds: float,
    now: dt.datetime,
    schedule: Schedule | None,
    *,
    is_running: bool = False,
    closes_at: dt.datetime | None = None,
) -> dt.datetime | None:
    """Return when work of `seconds` ends, if every scheduled run continues it; None: unknown.

    schedule: None: there are no scheduled runs. is_running: whether a run is active now; closes_at: when its hours
    end; None: never.
    """
    left, at = dt.timedelta(seconds=seconds), now
    if is_running:
        if closes_at is None or now + left <= closes_at:
            return now + left
        left, at = left - max(closes_at - now, dt.timedelta()), closes_at
    if schedule is None:
        return None
    for slot in islice(schedule.slots_after(at), MAX_SLOTS):
        if slot.at < at or not schedule.is_open(slot.at):
            continue
        closes = schedule.closes_after(slot.at)
        if closes is None or slot.at + left <= closes:
            return slot.at + left
        left, at = left - (closes - slot.at), closes
    return None
