"""Maintenance jobs, registered by the apps, and their schedules."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.schedules import Schedule
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import JobSchedule
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.rights import SCHEDULE, require


@dataclass(frozen=True, slots=True)
class Job:
    """Maintenance job, registered by an app.

    work: the operation; it gets the run's `Claim` and returns the figures of the run. title: its heading.
    description: what it does, for people. schedule: default schedule, which can be changed in the browser; None:
    runs only on request. max_attempts, retry_minutes: maximum number of attempts of a scheduled run, and the delay
    after a failure. needs_cassandra: whether it fails while Cassandra is down.
    """

    name: str
    work: Callable[[Any], Mapping[str, Any]]
    title: str
    description: str
    schedule: Schedule | None = None
    max_attempts: int = 1
    retry_minutes: int = 30
    needs_cassandra: bool = True


@dataclass(frozen=True, slots=True)
class Timetable:
    """Effective schedule of a job: the one set in the browser, else its default.

    changed_at: when it was set. broken: why the stored schedule is invalid ("" if it is valid), for example because
    its time zone no longer exists on this machine; other jobs still run, and `schedule` is the default.
    """

    job: Job
    schedule: Schedule | None
    is_enabled: bool
    changed_at: dt.datetime | None = None
    broken: str = ""


_jobs: dict[str, Job] = {}


def register_jobs(*jobs: Job) -> None:
    """Add kinds of maintenance; each app does so in its `maintenance_jobs` when Django starts.

    Raises ValueError for a name that another job has.
    """
    for job in jobs:
        if _jobs.setdefault(job.name, job) is not job:
            raise ValueError(f"There are two maintenance jobs called {job.name!r}.")


def list_jobs() -> list[Job]:
    """Return every registered job, in the order of registration."""
    return list(_jobs.values())


def job_named(name: str) -> Job:
    """Return a job. Raises `NotFound` if it does not exist."""
    if name not in _jobs:
        raise NotFound(_("The job “%(name)s” does not exist.", name=name))
    return _jobs[name]


def list_timetables() -> list[Timetable]:
    """Return the schedules of all jobs, in one query."""
    rows = JobSchedule.objects.in_bulk()
    return [_read_timetable(job, rows.get(job.name)) for job in list_jobs()]


def timetable_of(job: Job) -> Timetable:
    """Return the schedule of one job."""
    return _read_timetable(job, JobSchedule.objects.filter(pk=job.name).first())


def _read_timetable(job: Job, row: JobSchedule | None) -> Timetable:
    if row is None:
        return Timetable(job, job.schedule, is_enabled=job.schedule is not None)
    try:
        schedule = Schedule(row.cron, row.zone, row.opens, row.closes)
    except BadInput as error:
        return Timetable(job, job.schedule, row.is_enabled, row.changed_at, broken=error.text)
    return Timetable(job, schedule, row.is_enabled, row.changed_at)


def set_schedule(name: str, schedule: Schedule, *, is_enabled: bool, actor: User) -> JobSchedule:
    """Set the schedule of a job. Raises `Forbidden`."""
    require(actor, SCHEDULE)
    job = job_named(name)
    row, _was_made = JobSchedule.objects.update_or_create(
        job=job.name,
        defaults={
            "cron": schedule.cron,
            "zone": schedule.zone,
            "opens": schedule.opens,
            "closes": schedule.closes,
            "is_enabled": is_enabled,
            "changed_at": ClockTimestamp(),
            "changed_by": actor,
        },
    )
    return row
