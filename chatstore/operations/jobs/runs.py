"""Runs of maintenance jobs: due, claimed, under way, ended. Postgres is the queue here too.

A run for a slot is the unique row (job, slot): whoever makes it second has lost, so a night
has one run of each job, however many schedulers look. A run that was asked for by a person
has no slot, and leaves the next one where it was. One that failed stays so: trying again is
another run, made by itself as often as the job's settings say, or by a person.
Who calls these enqueues, after commit.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from chatstore.domain.errors import BadInput, ChatstoreError, NotFound
from chatstore.domain.runs import RunState
from chatstore.domain.schedules import Slot
from chatstore.models import JobRun
from chatstore.models.functions import ClockTimestamp
from chatstore.models.maintenance import JobRunQuerySet
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.coordination.leases import renewed
from chatstore.operations.jobs.definitions import Job, job_named, list_timetables, timetable_of
from chatstore.operations.rights import MAINTAIN, require

LEASE = dt.timedelta(seconds=60)
"""A run that says nothing for so long is taken up by another worker."""

RENEW_SECONDS = 10.0

TRIES = 3
"""How often a run is begun whose worker has gone, or which the store could not serve, before it has failed."""

LOOKS_BACK = dt.timedelta(hours=20)
"""A slot that nobody saw for so long, since nothing was running, is not made up for."""


ASKING_LOCK = 4_005_912
"""The first half of Postgres's advisory locks of whoever asks for a run; any number that nothing else uses."""

"""Runs that no worker has in hand."""


class RunLost(Exception):
    """Another worker has taken the run over."""


class RunStopped(ChatstoreError):
    """Somebody wanted the run to end."""


class OutOfHours(ChatstoreError):
    """The hours that the run may be at work in are over."""


def make_due_runs(now: dt.datetime) -> list[JobRun]:
    """Makes the runs whose time has come; gives those that nobody else had made."""
    made = []
    for times in list_timetables():
        if times.schedule is None or not times.is_on or times.broken:
            continue
        since = now - LOOKS_BACK if times.changed_at is None else max(now - LOOKS_BACK, times.changed_at)
        slot = times.schedule.last_slot(now, since=since)
        if slot is not None and (run := _make_run(times.job, slot)) is not None:
            made.append(run)
    return made


def _make_run(job: Job, slot: Slot) -> JobRun | None:
    run, made = JobRun.objects.get_or_create(job=job.name, slot=slot.key, defaults={"due_at": slot.at})
    return run if made else None


def ask_run(name: str, *, actor: User, subject: str = "", again_of: JobRun | None = None) -> JobRun:
    """A run that somebody wants now. subject: what it is about ("<channel>:<bucket>").

    One that waits for its time, a try after a failure, is brought forward: it knows what the earlier ones did.
    Raises `Forbidden`; `BadInput` while another one of the same job and subject is due or at work.
    """
    require(actor, MAINTAIN)
    job = job_named(name)
    with _asking_alone(job.name, subject):
        open_run = _open_runs(job.name, subject).first()
        if open_run is not None:
            ahead = JobRun.objects.free().filter(pk=open_run.pk, due_at__gt=ClockTimestamp())
            if not ahead.update(due_at=ClockTimestamp(), asked_by=actor):
                raise BadInput(f"{job.title} is already {open_run.state}.")
            open_run.refresh_from_db()
            return open_run
        return JobRun.objects.create(
            job=job.name, subject=subject, due_at=ClockTimestamp(), asked_by=actor, again_of=again_of
        )


def ask_by_itself(name: str, *, subject: str) -> JobRun | None:
    """A run that a measurement calls for, asked by nobody; None while one of the same waits or is at work."""
    job = job_named(name)
    with _asking_alone(job.name, subject):
        if _open_runs(job.name, subject).exists():
            return None
        return JobRun.objects.create(job=job.name, subject=subject, due_at=ClockTimestamp())


@contextmanager
def _asking_alone(job: str, subject: str) -> Iterator[None]:
    """A transaction beside which nobody else asks for the same: of two clicks at once the second sees the first's."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [ASKING_LOCK, f"{job} {subject}"])
        yield


def ask_again(run_id: int, *, actor: User) -> JobRun:
    """The same once more, after a run that has ended. Raises as `ask_run`, and `NotFound`."""
    require(actor, MAINTAIN)
    run = JobRun.objects.ended().filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id} that has ended.")
    return ask_run(run.job, actor=actor, subject=run.subject, again_of=run)


def stop_run(run_id: int, *, actor: User) -> bool:
    """Has a run end: at once when nobody is at work on it, else at its worker's next look.

    Whether there was anything to stop. Raises `Forbidden`, `NotFound`.
    """
    require(actor, MAINTAIN)
    if not JobRun.objects.filter(pk=run_id).exists():
        raise NotFound(f"There is no run {run_id}.")
    runs = JobRun.objects.filter(pk=run_id).open()
    if runs.free().update(state=RunState.STOPPED, stop_asked_by=actor, **_ENDING):
        return True
    return bool(runs.filter(stop_asked_by=None).update(stop_asked_by=actor))


def _open_runs(job: str, subject: str) -> JobRunQuerySet:
    return JobRun.objects.filter(job=job, subject=subject).open()


def due_runs() -> list[JobRun]:
    """Runs that nobody works on although they could go on, the earliest first."""
    waiting = JobRun.objects.open().free().due()
    return list(waiting.order_by("due_at", "id"))


@dataclass(slots=True)
class Claim:
    """A run in the hands of one worker. closes_at: when its hours are over; None: never."""

    run: JobRun
    token: uuid.UUID
    closes_at: dt.datetime | None = None

    def tell(self, *, done: int, total: int | None, what: str = "") -> None:
        """Says how far it is, between two parts of the work. Raises as `look`."""
        self._update(progress={"done": done, "total": total, "what": what})
        self.look()

    def look(self) -> None:
        """Whether it may go on. Raises `RunLost`, `RunStopped`, `OutOfHours`."""
        run = JobRun.objects.filter(pk=self.run.pk, token=self.token).only("stop_asked_by").first()
        if run is None:
            raise RunLost(f"run {self.run.pk}")
        if run.stop_asked_by_id is not None:
            raise RunStopped("It was stopped.")
        if self.closes_at is not None and postgres_now() >= self.closes_at:
            raise OutOfHours(f"It was still at work when its hours were over, at {self.closes_at:%H:%M} UTC.")

    def end(self, did: Mapping[str, Any]) -> None:
        """It has ended well. did: counts by name. Raises `RunLost`."""
        self._update(state=RunState.DONE, did=dict(did), error="", **_ENDING)

    def fail(self, error: str) -> None:
        """It has ended, and not well. Raises `RunLost`."""
        self._update(state=RunState.FAILED, error=error, **_ENDING)

    def skip(self, why: str) -> None:
        """It could not begin. Raises `RunLost`."""
        self._update(state=RunState.SKIPPED, error=why, **_ENDING)

    def note(self, did: Mapping[str, Any]) -> None:
        """Stores what it did up to now, for when it does not come to its end. Raises `RunLost`."""
        self._update(did=dict(did))

    def _update(self, **stored: Any) -> None:
        if JobRun.objects.filter(pk=self.run.pk, token=self.token).update(**stored) != 1:
            raise RunLost(f"run {self.run.pk}")


_ENDING: dict[str, Any] = {"ended_at": ClockTimestamp(), "token": None, "lease_until": None}


def claim_run(run_id: int) -> Claim | None:
    """Takes a run; None when somebody else has it, or it has ended. A run begun too often has failed."""
    token = uuid.uuid4()
    runs = JobRun.objects.open().free().filter(pk=run_id)
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


def work_on_run(run_id: int) -> JobRun | None:
    """Claims a run, does its job's work under a lease that is renewed, and stores how it ended.

    What a `ChatstoreError` of the work says is the run's error. Gives the run as it stands then;
    None when somebody else has it.
    """
    claim = claim_run(run_id)
    if claim is None:
        return None
    job = job_named(claim.run.job)
    try:
        with renewed(lambda: _renew(claim), every_seconds=RENEW_SECONDS):
            _work(job, claim)
    except RunLost:
        return None
    claim.run.refresh_from_db()
    return claim.run


def _work(job: Job, claim: Claim) -> None:
    try:
        why_not = _why_not(job, claim)
        if why_not:
            claim.skip(why_not)
        else:
            claim.end(job.work(claim))
    except RunStopped as stopped:
        claim._update(state=RunState.STOPPED, error=str(stopped), **_ENDING)
    except ChatstoreError as error:
        claim.fail(str(error))
        _try_again(job, claim.run)
    except Exception:
        # A fault of ours: the traceback goes to the log, and the run does not hang in the list.
        claim.fail("It broke off on an error of the program; the worker's log has it.")
        raise


def _why_not(job: Job, claim: Claim) -> str:
    """Why a run cannot begin now; sets until when it may be at work. Raises `BadInput` for a broken schedule."""
    # Of two that began together the earlier one goes on.
    mine = claim.run
    before = Q(started_at__lt=mine.started_at) | Q(started_at=mine.started_at, pk__lt=mine.pk)
    others = _open_runs(job.name, "").filter(before, lease_until__gte=ClockTimestamp())
    if not mine.subject and (other := others.first()) is not None:
        return f"Run {other.pk} of the same job is still at work."
    # Hours are for what begins by itself; somebody at a terminal asks without an account.
    begins_by_itself = claim.run.slot is not None or claim.run.again_of_id is not None
    if claim.run.asked_by_id is not None or not begins_by_itself:
        return ""
    times = timetable_of(job)
    if times.broken:
        raise BadInput(times.broken)
    schedule = times.schedule
    if schedule is None:
        return ""
    now = postgres_now()
    if not schedule.is_open(now):
        return f"It may only run between {schedule.opens:%H:%M} and {schedule.closes:%H:%M} ({schedule.zone})."
    claim.closes_at = schedule.closes_after(now)
    return ""


def tries_of(run: JobRun) -> list[JobRun]:
    """A run and those that it tries again, the first try last."""
    tries = [run]
    while (before := tries[-1].again_of) is not None:
        tries.append(before)
    return tries


def _try_again(job: Job, failed: JobRun) -> None:
    """Another run of a scheduled one that failed, later, unless it was tried often enough."""
    tries = tries_of(failed)
    if tries[-1].slot is None or len(tries) >= job.tries:
        return
    later = ClockTimestamp() + dt.timedelta(minutes=job.retry_minutes)
    JobRun.objects.create(job=job.name, due_at=later, again_of=failed)


def _renew(claim: Claim) -> None:
    JobRun.objects.filter(pk=claim.run.pk, token=claim.token).update(lease_until=_lease_end())


def _lease_end() -> models.expressions.Combinable:
    return ClockTimestamp() + LEASE
