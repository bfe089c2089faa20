"""Runs of maintenance jobs: due, claimed, under way, ended. Postgres is the queue here too.

A run for a slot is the unique row (job, slot): whoever makes it second has lost, so a night
has one run of each job, however many schedulers look. A run that was asked for by a person
has no slot, and leaves the next one where it was. Who calls these enqueues, after commit.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from chatstore.domain.errors import BadInput, ChatstoreError, NotFound
from chatstore.domain.runs import ENDED, RunState
from chatstore.domain.schedules import Schedule, Slot
from chatstore.models import JobRun, JobSchedule
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.leases import renewed

LEASE = dt.timedelta(seconds=60)
"""A run that says nothing for so long is taken up by another worker."""

RENEW_SECONDS = 10.0

TRIES = 3
"""How often a run is begun whose worker has gone, or which the store could not serve, before it has failed."""

LOOKS_BACK = dt.timedelta(hours=20)
"""A slot that nobody saw for so long, since nothing was running, is not made up for."""


_FREE = Q(lease_until=None) | Q(lease_until__lt=ClockTimestamp())
"""Runs that no worker has in hand."""


class RunLost(Exception):
    """Another worker has taken the run over."""


@dataclass(frozen=True, slots=True)
class Job:
    """A kind of maintenance, as settings declare it (`MAINTENANCE_JOBS`).

    task: the Celery task that takes a run's id. words: what it does, for people.
    """

    name: str
    task: str
    words: str
    schedule: Schedule | None


def list_jobs() -> list[Job]:
    """Every job there is, with its defaults."""
    return [
        Job(name, entry["task"], entry["words"], Schedule(*entry["schedule"]) if entry.get("schedule") else None)
        for name, entry in settings.MAINTENANCE_JOBS.items()
    ]


def job_named(name: str) -> Job:
    """Raises `NotFound` for a job that there is none of."""
    for job in list_jobs():
        if job.name == name:
            return job
    raise NotFound(f"There is no job called {name!r}.")


def schedule_of(job: Job) -> tuple[Schedule | None, bool]:
    """(when it runs, whether it is switched on): what was set in the browser, else the defaults."""
    return _read_schedule(job, JobSchedule.objects.filter(pk=job.name).first())


def _read_schedule(job: Job, row: JobSchedule | None) -> tuple[Schedule | None, bool]:
    if row is None:
        return job.schedule, job.schedule is not None
    return Schedule(row.cron, row.zone, row.opens, row.closes), row.is_on


def set_schedule(name: str, schedule: Schedule, *, is_on: bool, actor: User) -> JobSchedule:
    """Sets when a job runs. The caller has checked the actor's right."""
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


def make_due_runs(now: dt.datetime) -> list[JobRun]:
    """Makes the runs whose time has come; gives those that nobody else had made."""
    made = []
    rows = JobSchedule.objects.in_bulk()
    for job in list_jobs():
        row = rows.get(job.name)
        schedule, is_on = _read_schedule(job, row)
        if schedule is None or not is_on:
            continue
        since = now - LOOKS_BACK if row is None else max(now - LOOKS_BACK, row.changed_at)
        slot = schedule.last_slot(now, since=since)
        if slot is not None and (run := _make_run(job, slot)) is not None:
            made.append(run)
    return made


def _make_run(job: Job, slot: Slot) -> JobRun | None:
    run, made = JobRun.objects.get_or_create(job=job.name, slot=slot.key, defaults={"due_at": slot.at})
    return run if made else None


def ask_run(name: str, *, actor: User, subject: str = "") -> JobRun:
    """A run that somebody wants now. The caller has checked his right.

    Raises `BadInput` while another one of the same job and subject waits or is at work.
    """
    job = job_named(name)
    open_run = JobRun.objects.filter(job=job.name, subject=subject).exclude(state__in=ENDED).first()
    if open_run is not None:
        raise BadInput(f"{job.words} is {open_run.state} already.")
    return JobRun.objects.create(job=job.name, subject=subject, due_at=ClockTimestamp(), asked_by=actor)


def due_runs() -> list[JobRun]:
    """Runs that nobody works on although they could go on, the earliest first."""
    waiting = JobRun.objects.filter(_FREE, due_at__lte=ClockTimestamp()).exclude(state__in=ENDED)
    return list(waiting.order_by("due_at", "id"))


@dataclass(slots=True)
class Claim:
    """A run in the hands of one worker."""

    run: JobRun
    token: uuid.UUID

    def tell(self, *, done: int, total: int | None, what: str = "") -> None:
        """Says how far it is. Raises `RunLost`."""
        self._update(progress={"done": done, "total": total, "what": what})

    def end(self, did: Mapping[str, Any]) -> None:
        """It has ended well. did: counts by name. Raises `RunLost`."""
        self._update(state=RunState.DONE, did=dict(did), error="", **_ENDING)

    def fail(self, error: str, *, did: Mapping[str, Any] | None = None) -> None:
        """It has ended, and not well."""
        self._update(state=RunState.FAILED, did=dict(did or {}), error=error, **_ENDING)

    def skip(self, why: str) -> None:
        """It could not begin in the hours that it may run in."""
        self._update(state=RunState.SKIPPED, error=why, **_ENDING)

    def put_back(self, *, due_in: dt.timedelta, why: str) -> None:
        """To be taken up again later; counts as one of its tries."""
        later = ClockTimestamp() + models.Value(due_in, output_field=models.DurationField())
        self._update(state=RunState.QUEUED, error=why, due_at=later, token=None, lease_until=None)

    def _update(self, **stored: Any) -> None:
        if JobRun.objects.filter(pk=self.run.pk, token=self.token).update(**stored) != 1:
            raise RunLost(f"run {self.run.pk}")


_ENDING: dict[str, Any] = {"ended_at": ClockTimestamp(), "token": None, "lease_until": None}


def claim_run(run_id: int) -> Claim | None:
    """Takes a run; None when somebody else has it, or it has ended. A run begun too often has failed."""
    token = uuid.uuid4()
    runs = JobRun.objects.filter(_FREE, pk=run_id).exclude(state__in=ENDED)
    worn_out = runs.filter(tries__gte=TRIES)
    worn_out.filter(error="").update(error=f"begun {TRIES} times, and never brought to its end")
    worn_out.update(state=RunState.FAILED, **_ENDING)
    claimed = runs.update(
        state=RunState.RUNNING,
        token=token,
        lease_until=_lease_end(),
        tries=F("tries") + 1,
        started_at=Coalesce(F("started_at"), ClockTimestamp()),
    )
    return Claim(JobRun.objects.get(pk=run_id), token) if claimed else None


def work_on_run(run_id: int, work: Callable[[Claim], Mapping[str, Any]]) -> JobRun | None:
    """Claims a run, does its work under a lease that is renewed, and stores how it ended.

    work: gives its counts by name; a `ChatstoreError` that it raises is the run's error.
    Gives the run as it stands then; None when somebody else has it.
    """
    claim = claim_run(run_id)
    if claim is None:
        return None
    try:
        with renewed(lambda: _renew(claim), every_seconds=RENEW_SECONDS):
            try:
                claim.end(work(claim))
            except ChatstoreError as error:
                claim.fail(str(error))
    except RunLost:
        return None
    claim.run.refresh_from_db()
    return claim.run


def _renew(claim: Claim) -> None:
    JobRun.objects.filter(pk=claim.run.pk, token=claim.token).update(lease_until=_lease_end())


def _lease_end() -> models.expressions.Combinable:
    return ClockTimestamp() + models.Value(LEASE, output_field=models.DurationField())
