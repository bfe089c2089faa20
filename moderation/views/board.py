"""The operator's board on Home: nodes, repair clocks, worst partitions, and the jobs of the next 24 hours.

The figures are those of the pages for health and maintenance, from the same operations.
"""

from __future__ import annotations

import datetime as dt
from operator import itemgetter
from typing import Any

from chatstore.domain.repair_clocks import RepairClock
from chatstore.operations.health.cluster_health import ClusterHealth, read_cluster_health
from chatstore.operations.monitoring.console import Actor, JobView, describe_jobs

JOBS_WITHIN = dt.timedelta(hours=24)

PARTITIONS_SHOWN = 5
"""Partitions with the most tombstones; the page for health lists more, and those by size."""


def describe_board(user: Actor) -> dict[str, Any]:
    """Return the context of the board. Raises `Forbidden`."""
    health = read_cluster_health(user, is_brief=True)
    return {
        "health": health,
        "clocks": _order_clocks(health),
        "worst": health.worst.by_tombstones[:PARTITIONS_SHOWN] if health.worst else [],
        "jobs": _jobs_soon(describe_jobs(user, last=1, now=health.now), health.now),
    }


def _order_clocks(health: ClusterHealth) -> list[RepairClock]:
    """Return the clocks of tables with deletes: that of the messages, then those with the least time left."""
    clocks = list(health.clocks or ())
    others = [clock for clock in clocks[1:] if clock.is_deleted_from]
    return clocks[:1] + sorted(others, key=lambda clock: -clock.share)


def _jobs_soon(jobs: list[JobView], now: dt.datetime) -> list[JobView]:
    """Return the jobs that wait for a worker, then those that run within the next 24 hours, the next one first."""
    waiting = [job for job in jobs if job.waiting]
    others = [job for job in jobs if not job.waiting]
    soon = [(job.next_slot.at, job) for job in others if job.next_slot and job.next_slot.at - now <= JOBS_WITHIN]
    return [*waiting, *(job for _at, job in sorted(soon, key=itemgetter(0)))]
