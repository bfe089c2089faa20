"""The current round of repairs, and when it will be complete at the current speed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from chatstore.domain.errors import NotFound
from chatstore.domain.repair_clocks import RepairClock
from chatstore.domain.repair_rounds import RepairRound, count_repaired, predict_end
from chatstore.domain.runs import RunState
from chatstore.domain.schedules import Schedule
from chatstore.domain.texts import from_json
from chatstore.models import JobRun
from chatstore.models.maintenance import JobRunQuerySet
from chatstore.operations.jobs.definitions import job_named, timetable_of

JOB = "repair"

NODES_REPAIRED, ROUND_BEGAN = "nodes repaired", "round began"
"""Names of results of a run: the number of nodes that it repaired; when the round began that it continued."""

SPEED_RUNS = 10
"""Number of the latest runs that decide how long a node takes."""

ROUND_RUNS = 30
"""Number of the latest runs in which the start of the round is searched. Runs that never started record none."""


def last_round_began_at() -> dt.datetime | None:
    """Return when the latest round began; None if no run has recorded it."""
    recorded = (run.result[ROUND_BEGAN] for run in _runs()[:ROUND_RUNS] if ROUND_BEGAN in run.result)
    began_at = from_json(next(recorded, None))
    return began_at if isinstance(began_at, dt.datetime) else None


def read_round(now: dt.datetime, clocks: Sequence[RepairClock]) -> RepairRound | None:
    """Return the round by the clocks of all tables; None if no run has begun one."""
    began_at = last_round_began_at()
    if began_at is None:
        return None
    last_repairs = {
        node: min(clock.per_node[node] or began_at - dt.timedelta(days=1) for clock in clocks)
        for node in clocks[0].per_node
    }
    total, repaired = len(last_repairs), count_repaired(last_repairs, began_at)
    return RepairRound(began_at, total, repaired, None if repaired >= total else _predict_end(now, total - repaired))


def _predict_end(now: dt.datetime, nodes_left: int) -> dt.datetime | None:
    seconds = _seconds_per_node(now)
    if seconds is None:
        return None
    schedule = _schedule()
    running = JobRun.objects.filter(job=JOB, subject="", state=RunState.RUNNING).order_by("id").first()
    is_limited = running is not None and running.requested_by_id is None
    return predict_end(
        nodes_left * seconds,
        now,
        schedule,
        is_running=running is not None,
        closes_at=schedule.closes_after(now) if schedule and is_limited else None,
    )


def _seconds_per_node(now: dt.datetime) -> float | None:
    """Return the time that the latest runs took for a node; None if they repaired none."""
    runs = [run for run in _runs().filter(started_at__isnull=False)[:SPEED_RUNS] if run.result.get(NODES_REPAIRED)]
    seconds = sum(((run.ended_at or now) - run.started_at).total_seconds() for run in runs if run.started_at)
    return seconds / sum(run.result[NODES_REPAIRED] for run in runs) if runs else None


def _schedule() -> Schedule | None:
    """Return the schedule of the job; None if it is disabled, invalid, or there is no such job."""
    try:
        times = timetable_of(job_named(JOB))
    except NotFound:
        return None
    return times.schedule if times.is_enabled and not times.broken else None


def _runs() -> JobRunQuerySet:
    return JobRun.objects.filter(job=JOB, subject="").order_by("-due_at", "-id")
