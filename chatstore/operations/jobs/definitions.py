"""Kinds of maintenance jobs, registered by the apps, and when each runs by itself."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User

from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.schedules import Schedule
from chatstore.models import JobSchedule
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.rights import SCHEDULE, require

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, slots=True)
class Job:
    """A kind of maintenance.

    work: the operation; it gets the run's `Claim` and returns the figures of the run. title: the name as a
    heading. words: a description for people. schedule: when the job runs unless that was changed in the
    browser; None: only on request. tries, retry_minutes: attempts of a scheduled run in all, and the pause
    after one that failed.
    """

    name: str
    work: Callable[[Any], Mapping[str, Any]]
    title: StrOrPromise
    words: StrOrPromise
    schedule: Schedule | None = None
    tries: int = 1
    retry_minutes: int = 30


@dataclass(frozen=True, slots=True)
class Timetable:
    """When a job runs by itself: what was set in the browser, else its default.

    changed_at: when that was set. broken: why what was set means nothing any more ("" when it does: a time
    zone may be gone from this machine's list); the job then keeps no other from running, and `schedule` is
    its default.
    """

    job: Job
    schedule: Schedule | None
    is_on: bool
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
    """Return a registered job. Raises `NotFound`."""
    if name not in _jobs:
        raise NotFound(f"There is no job called {name!r}.")
    return _jobs[name]


def list_timetables() -> list[Timetable]:
    """Of every job, in one query."""
    rows = JobSchedule.objects.in_bulk()
    return [_read_timetable(job, rows.get(job.name)) for job in list_jobs()]


def timetable_of(job: Job) -> Timetable:
    """Of one job."""
    return _read_timetable(job, JobSchedule.objects.filter(pk=job.name).first())


def _read_timetable(job: Job, row: JobSchedule | None) -> Timetable:
    if row is None:
        return Timetable(job, job.schedule, is_on=job.schedule is not None)
    try:
        schedule = Schedule(row.cron, row.zone, row.opens, row.closes)
    except BadInput as error:
        return Timetable(job, job.schedule, row.is_on, row.changed_at, broken=str(error))
    return Timetable(job, schedule, row.is_on, row.changed_at)


def set_schedule(name: str, schedule: Schedule, *, is_on: bool, actor: User) -> JobSchedule:
    """Sets when a job runs. Raises `Forbidden`."""
    require(actor, SCHEDULE)
    job = job_named(name)
    row, _ = JobSchedule.objects.update_or_create(
        job=job.name,
        defaults={
            "cron": schedule.cron,
            "zone": schedule.zone,
            "opens": schedule.opens,
            "closes": schedule.closes,
            "is_on": is_on,
            "changed_at": ClockTimestamp(),
            "changed_by": actor,
        },
    )
    return row
