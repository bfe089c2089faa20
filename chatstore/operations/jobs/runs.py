"""Runs of maintenance jobs: due, claimed, running, ended. Postgres is the queue here too.

The run of a slot is the unique row (job, slot). Of concurrent inserts only the first succeeds, so each job runs
once per night, however many schedulers poll. A run requested by a user has no slot and leaves the next one
unchanged. A failed run stays failed: a retry is another run, created automatically as often as the job's
settings allow, or by a user. Callers enqueue tasks after commit.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from chatstore.domain.errors import BadInput, ChatstoreError, NotFound
from chatstore.domain.runs import RunState
from chatstore.domain.schedules import Slot
from chatstore.domain.texts import as_json, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import JobRun
from chatstore.models.functions import ClockTimestamp
from chatstore.models.maintenance import JobRunQuerySet
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.coordination.leases import renewed
from chatstore.operations.jobs.definitions import Job, job_named, list_timetables, timetable_of
from chatstore.operations.rights import MAINTAIN, require

LEASE = dt.timedelta(seconds=60)
"""A run whose lease was not renewed for this long is taken over by another worker."""

RENEW_SECONDS = 10.0

MAX_ATTEMPTS = 3
"""Number of times a run is started whose worker died or whose store was unavailable, before it fails."""

MAX_CATCH_UP = dt.timedelta(hours=20)
"""Slots missed for longer than this, because nothing was running, are not caught up."""


REQUEST_LOCK = 4_005_912
"""First key of the Postgres advisory locks for requesting a run; any number that is not used elsewhere."""


class RunLost(Exception):
    """Another worker has taken over the run."""


class RunStopped(ChatstoreError):
    """A user has stopped the run."""


class OutOfHours(ChatstoreError):
    """The run's allowed hours have ended."""


def create_due_runs(now: dt.datetime) -> list[JobRun]:
    """Create runs for due slots; return those that no other process had created."""
    made = []
    for times in list_timetables():
        if times.schedule is None or not times.is_enabled or times.broken:
            continue
        since = now - MAX_CATCH_UP if times.changed_at is None else max(now - MAX_CATCH_UP, times.changed_at)
        slot = times.schedule.last_slot(now, since=since)
        if slot is not None and (run := _create_run(times.job, slot)) is not None:
            made.append(run)
    return made


def _create_run(job: Job, slot: Slot) -> JobRun | None:
    run, made = JobRun.objects.get_or_create(job=job.name, slot=slot.key, defaults={"due_at": slot.at})
    return run if made else None


def request_run(name: str, *, actor: User, subject: str = "", retry_of: JobRun | None = None) -> JobRun:
    """Request a run now. subject: what it is about ("<channel>:<bucket>").

    A run that waits for its time (a retry after a failure) is brought forward, because it skips what earlier
    attempts completed. Raises `Forbidden`; `BadInput` while another one of the same job and subject is due
    or running.
    """
    require(actor, MAINTAIN)
    job = job_named(name)
    with _serialized_request(job.name, subject):
        open_run = _open_runs(job.name, subject).first()
        if open_run is not None:
            ahead = JobRun.objects.free().filter(pk=open_run.pk, due_at__gt=ClockTimestamp())
            if not ahead.update(due_at=ClockTimestamp(), requested_by=actor):
                if open_run.state == RunState.RUNNING:
                    raise BadInput(_("%(job)s is already running.", job=job.title))
                raise BadInput(_("%(job)s is already queued.", job=job.title))
            open_run.refresh_from_db()
            return open_run
        return JobRun.objects.create(
            job=job.name, subject=subject, due_at=ClockTimestamp(), requested_by=actor, retry_of=retry_of
        )


def request_automatic_run(name: str, *, subject: str) -> JobRun | None:
    """Request a run automatically, for example after a measurement; None while the same one is queued or running."""
    job = job_named(name)
    with _serialized_request(job.name, subject):
        if _open_runs(job.name, subject).exists():
            return None
        return JobRun.objects.create(job=job.name, subject=subject, due_at=ClockTimestamp())


@contextmanager
def _serialized_request(job: str, subject: str) -> Iterator[None]:
    """Open a transaction that serializes requests for the same run, so that the second of two clicks sees the first."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [REQUEST_LOCK, f"{job} {subject}"])
        yield


def repeat_run(run_id: int, *, actor: User) -> JobRun:
    """Repeat a run that has ended. Raises as `request_run`, and `NotFound`."""
    require(actor, MAINTAIN)
    run = JobRun.objects.ended().filter(pk=run_id).first()
    if run is None:
        raise NotFound(_("Run %(id)s does not exist or has not ended.", id=str(run_id)))
    return request_run(run.job, actor=actor, subject=run.subject, retry_of=run)


def stop_run(run_id: int, *, actor: User) -> bool:
    """Stop a run: at once if no worker has claimed it, else at its worker's next check.

    Return whether there was anything to stop. Raises `Forbidden`, `NotFound`.
    """
    require(actor, MAINTAIN)
    if not JobRun.objects.filter(pk=run_id).exists():
        raise NotFound(_("Run %(id)s does not exist.", id=str(run_id)))
    runs = JobRun.objects.filter(pk=run_id).open()
    if runs.free().update(state=RunState.STOPPED, stop_requested_by=actor, **_ENDING):
        return True
    return bool(runs.filter(stop_requested_by=None).update(stop_requested_by=actor))


def _open_runs(job: str, subject: str) -> JobRunQuerySet:
    return JobRun.objects.filter(job=job, subject=subject).open()


def due_runs() -> list[JobRun]:
    """Return due runs that no worker has claimed, earliest first."""
    waiting = JobRun.objects.open().free().due()
    return list(waiting.order_by("due_at", "id"))


@dataclass(slots=True)
class Claim:
    """Claim of one worker on a run. closes_at: when its allowed hours end; None: never."""

    run: JobRun
    token: uuid.UUID
    closes_at: dt.datetime | None = None

    def report_progress(self, *, done: int, total: int | None, what: str = "") -> None:
        """Record the progress between two parts of the work. Raises as `check`."""
        self._update(progress={"done": done, "total": total, "what": as_json(what)})
        self.check()

    def check(self) -> None:
        """Check that the run may continue. Raises `RunLost`, `RunStopped`, `OutOfHours`."""
        run = JobRun.objects.filter(pk=self.run.pk, token=self.token).only("stop_requested_by").first()
        if run is None:
            raise RunLost(f"run {self.run.pk}")
        if run.stop_requested_by_id is not None:
            raise RunStopped(_("The run was stopped."))
        if self.closes_at is not None and postgres_now() >= self.closes_at:
            raise OutOfHours(_("The run had not completed when its hours ended (%(time)s).", time=self.closes_at))

    def end(self, result: Mapping[str, Any]) -> None:
        """Mark the run as done. result: counts by name. Raises `RunLost`."""
        self._update(state=RunState.DONE, result=dict(result), error="", **_ENDING)

    def fail(self, error: str) -> None:
        """Mark the run as failed. Raises `RunLost`."""
        self._update(state=RunState.FAILED, error=error, **_ENDING)

    def skip(self, why: str) -> None:
        """Mark the run as skipped because it could not start. Raises `RunLost`."""
        self._update(state=RunState.SKIPPED, error=why, **_ENDING)

    def note(self, result: Mapping[str, Any]) -> None:
        """Store intermediate counts, in case the run does not complete. Raises `RunLost`."""
        self._update(result=dict(result))

    def _update(self, **stored: Any) -> None:
        if JobRun.objects.filter(pk=self.run.pk, token=self.token).update(**stored) != 1:
            raise RunLost(f"run {self.run.pk}")


_ENDING: dict[str, Any] = {"ended_at": ClockTimestamp(), "token": None, "lease_until": None}


def claim_run(run_id: int) -> Claim | None:
    """Claim a run; return None if another worker has it or it has ended. Fail a run that was started too often."""
    token = uuid.uuid4()
    runs = JobRun.objects.open().free().filter(pk=run_id)
    exhausted = runs.filter(attempts__gte=MAX_ATTEMPTS)
    exhausted.filter(error="").update(
        error=ngettext_lazy(
            "started %(count)s time without completing", "started %(count)s times without completing", MAX_ATTEMPTS
        )
    )
    exhausted.update(state=RunState.FAILED, **_ENDING)
    claimed = runs.update(
        state=RunState.RUNNING,
        token=token,
        lease_until=_lease_end(),
        attempts=F("attempts") + 1,
        started_at=Coalesce(F("started_at"), ClockTimestamp()),
    )
    return Claim(JobRun.objects.get(pk=run_id), token) if claimed else None


def work_on_run(run_id: int) -> JobRun | None:
    """Claim a run, execute its job under a renewed lease, and store the outcome.

    The message of a `ChatstoreError` becomes the run's error. Return the run in its final state; None if another
    worker has it.
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
        claim._update(state=RunState.STOPPED, error=stopped.text, **_ENDING)
    except ChatstoreError as error:
        claim.fail(error.text)
        _schedule_retry(job, claim.run)
    except Exception:
        # A bug: the traceback goes to the log, and the run must not stay in the list as running.
        claim.fail(_("The run failed with an unexpected error. See the worker’s log."))
        raise


def _why_not(job: Job, claim: Claim) -> str:
    """Return why a run cannot start now, or ""; sets the end of its hours. Raises `BadInput` for a broken schedule."""
    # Of two that started at the same time, the earlier one continues.
    mine = claim.run
    before = Q(started_at__lt=mine.started_at) | Q(started_at=mine.started_at, pk__lt=mine.pk)
    others = _open_runs(job.name, "").filter(before, lease_until__gte=ClockTimestamp())
    if not mine.subject and (other := others.first()) is not None:
        return _("Run %(id)s of the same job is still running.", id=str(other.pk))
    # Hours only apply to automatic runs; a management command requests a run without an account.
    begins_by_itself = claim.run.slot is not None or claim.run.retry_of_id is not None
    if claim.run.requested_by_id is not None or not begins_by_itself:
        return ""
    times = timetable_of(job)
    if times.broken:
        raise BadInput(times.broken)
    schedule = times.schedule
    if schedule is None:
        return ""
    now = postgres_now()
    if schedule.opens is not None and schedule.closes is not None and not schedule.is_open(now):
        return _(
            "It may only run between %(first)s and %(last)s (%(zone)s).",
            first=schedule.opens,
            last=schedule.closes,
            zone=schedule.zone,
        )
    claim.closes_at = schedule.closes_after(now)
    return ""


def attempts_of(run: JobRun) -> list[JobRun]:
    """Return a run and the runs that it retries, the first attempt last."""
    attempts = [run]
    while (before := attempts[-1].retry_of) is not None:
        attempts.append(before)
    return attempts


def _schedule_retry(job: Job, failed: JobRun) -> None:
    """Schedule a retry of a failed scheduled run, unless it has no attempts left."""
    attempts = attempts_of(failed)
    if attempts[-1].slot is None or len(attempts) >= job.max_attempts:
        return
    later = ClockTimestamp() + dt.timedelta(minutes=job.retry_minutes)
    JobRun.objects.create(job=job.name, due_at=later, retry_of=failed)


def _renew(claim: Claim) -> None:
    JobRun.objects.filter(pk=claim.run.pk, token=claim.token).update(lease_until=_lease_end())


def _lease_end() -> models.expressions.Combinable:
    return ClockTimestamp() + LEASE
