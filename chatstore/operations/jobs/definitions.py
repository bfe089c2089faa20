"""The kinds of maintenance that there are, as settings declare them, and when each runs by itself."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.schedules import Schedule
from chatstore.models import JobSchedule
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.rights import SCHEDULE, require


@dataclass(frozen=True, slots=True)
class Job:
    """A kind of maintenance, as settings declare it (`MAINTENANCE_JOBS`).

    work: the dotted name of the operation, `Callable[[Claim], Mapping]`. title: the name as a heading.
    words: what it does, for people. schedule: when it runs unless that was changed in the browser; None:
    only when somebody asks. tries, retry_minutes: how often a scheduled run is begun in all when it fails,
    and how long after.
    """

    name: str
    work: str
    title: str
    words: str
    schedule: Schedule | None
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


def list_jobs() -> list[Job]:
    """Every job there is, with its defaults."""
    return [_read_job(name, entry) for name, entry in settings.MAINTENANCE_JOBS.items()]


def _read_job(name: str, entry: Mapping[str, Any]) -> Job:
    return Job(
        name,
        entry["work"],
        entry.get("title") or name.replace("-", " ").replace("_", " ").capitalize(),
        entry["words"],
        Schedule(*entry["schedule"]) if entry.get("schedule") else None,
        entry.get("tries", 1),
        entry.get("retry_minutes", 30),
    )


def job_named(name: str) -> Job:
    """Raises `NotFound` for a job that there is none of."""
    for job in list_jobs():
        if job.name == name:
            return job
    raise NotFound(f"There is no job called {name!r}.")


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
