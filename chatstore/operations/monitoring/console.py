"""What an operator reads of maintenance: each job with its schedule and its past runs, and every run there was."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AbstractUser, AnonymousUser, User
from django.db.models import Exists, OuterRef

from chatstore.domain.buckets import bucket_days, days_in_words
from chatstore.domain.errors import BadInput, NotFound, StoreUnavailable
from chatstore.domain.runs import ENDED, RunState
from chatstore.domain.schedules import Schedule, Slot
from chatstore.models import Channel, Finding, JobRun
from chatstore.models.maintenance import JobRunQuerySet
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import open_findings
from chatstore.operations.jobs.definitions import Job, job_named, list_jobs, timetable_of
from chatstore.operations.jobs.runs import ask_run
from chatstore.operations.monitoring.checks import say_beat_silence
from chatstore.operations.rights import READ_HEALTH, require
from chatstore.store.heartbeats import WATCH, seconds_since

Actor = AbstractUser | AnonymousUser

NEXT_RUNS, LAST_RUNS = 5, 30
RUNS_ABOUT = 12
RUNS_A_PAGE = 30
FAILED_RUNS = 8
"""What the page of maintenance lists of them; the history has the others."""

FAILED_WITHIN = dt.timedelta(days=7)
"""A failure that nobody repeated for so long is history."""

WATCH_SILENT_SECONDS = 300.0
"""The watch looks each minute."""

_BUCKET = re.compile(r"(-?\d{1,20}):(-?\d{1,9})")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a run is about: a bucket of a channel, which may be none any more."""

    channel_id: int
    bucket: int
    channel: Channel | None

    @property
    def days(self) -> str:
        """ "11–20 March 2024"."""
        return days_in_words(*bucket_days(self.bucket))

    def __str__(self) -> str:
        return f"{self.channel or f'channel {self.channel_id}'}, {self.days}"


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run as a page shows it.

    title, words: its job's; a job that there is none of any more has no words. subject: the bucket that
    it is about, where it is about one. seconds: how long it took, or has been at work; None: not begun.
    is_ahead: its time has not come.
    """

    run: JobRun
    title: str
    words: str
    subject: Subject | None
    seconds: float | None
    is_ahead: bool

    @property
    def has_ended(self) -> bool:
        return self.run.state in ENDED


@dataclass(frozen=True, slots=True)
class JobView:
    """A job that runs by itself. next_slots: the next five, none when it is switched off. last: newest last.

    broken: why the schedule that was set is not used; `schedule` is then the default, which is not used either.
    """

    job: Job
    schedule: Schedule
    is_on: bool
    next_slots: Sequence[Slot]
    last: Sequence[ListedRun]
    open: Sequence[ListedRun]
    broken: str = ""

    @property
    def may_run_now(self) -> bool:
        """Whether nothing of it is due or at work: what waits for its time is brought forward."""
        return all(entry.is_ahead for entry in self.open)

    @property
    def counts(self) -> dict[str, int]:
        """How many of the last runs ended in which state, in the order of the states."""
        states = [entry.run.state for entry in self.last]
        return {state.value: states.count(state) for state in RunState if state in states}


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of the history, newest first. older: exclusive cursor of the next page, or None."""

    runs: Sequence[ListedRun]
    older: int | None


def describe_jobs(user: Actor) -> list[JobView]:
    """The jobs with a schedule. Raises `Forbidden`."""
    require(user, READ_HEALTH)
    now = postgres_now()
    return [view for job in list_jobs() if (view := _describe_job(job, now)) is not None]


def describe_job(user: Actor, name: str) -> JobView:
    """One of them. Raises `Forbidden`, `NotFound` also for a job without a schedule."""
    require(user, READ_HEALTH)
    view = _describe_job(job_named(name), postgres_now())
    if view is None:
        raise NotFound(f"The job {name!r} has no schedule: it runs when somebody asks for it.")
    return view


def next_slots(schedule: Schedule) -> list[Slot]:
    """When it is due next, five times."""
    return schedule.next_slots(postgres_now(), NEXT_RUNS)


def ask_now(name: str, *, actor: User) -> JobRun:
    """A run of a scheduled job now; the next one stays where it was. Raises as `ask_run`."""
    if job_named(name).schedule is None:
        raise BadInput("This is done to one bucket: open it from its channel’s health.")
    return ask_run(name, actor=actor)


def open_runs(user: Actor, *, at_most: int | None = None) -> list[ListedRun]:
    """What is at work, then what waits, the longest first. Raises `Forbidden`."""
    require(user, READ_HEALTH)
    return _describe(_runs().open().order_by("-state", "due_at", "id")[:at_most])


def count_open_runs(user: Actor) -> int:
    """How many are at work or wait. Raises `Forbidden`."""
    require(user, READ_HEALTH)
    return JobRun.objects.open().count()


def failed_runs(user: Actor) -> list[ListedRun]:
    """The last failure of each job and subject of the last days that no good run has followed, the
    latest ones. Raises `Forbidden`.
    """
    require(user, READ_HEALTH)
    later = JobRun.objects.filter(job=OuterRef("job"), subject=OuterRef("subject"), ended_at__gt=OuterRef("ended_at"))
    failed = _runs().filter(
        ~Exists(later.filter(state__in=(RunState.DONE, RunState.FAILED))),
        # A job that there is none of any more cannot be mended.
        job__in=[job.name for job in list_jobs()],
        state=RunState.FAILED,
        ended_at__gte=postgres_now() - FAILED_WITHIN,
    )
    return _describe(failed.order_by("-ended_at")[:FAILED_RUNS])


def list_runs(
    user: Actor,
    *,
    job: str = "",
    state: str = "",
    since: dt.date | None = None,
    until: dt.date | None = None,
    before: int | None = None,
) -> RunPage:
    """Every run that was ever asked for or due; dates are days in UTC, both included.

    Raises `Forbidden`, `NotFound` for a job and `BadInput` for a state that there is none of.
    """
    require(user, READ_HEALTH)
    runs = _runs().order_by("-id")
    if job:
        runs = runs.filter(job=job_named(job).name)
    if state:
        if state not in set(RunState):
            raise BadInput(f"There is no state {state!r} to filter by.")
        runs = runs.filter(state=state)
    if since is not None:
        runs = runs.filter(due_at__gte=_midnight(since))
    if until is not None:
        runs = runs.filter(due_at__lt=_midnight(until) + dt.timedelta(days=1))
    if before is not None:
        runs = runs.filter(pk__lt=before)
    found = _describe(runs[: RUNS_A_PAGE + 1])
    shown = found[:RUNS_A_PAGE]
    return RunPage(shown, older=shown[-1].run.pk if len(found) > RUNS_A_PAGE else None)


def runs_about(user: Actor, subject: str) -> list[ListedRun]:
    """The last runs about a channel ("<id>") or a bucket ("<id>:<bucket>"), newest first. Raises `Forbidden`."""
    require(user, READ_HEALTH)
    return _describe(_runs().filter(subject=subject).order_by("-due_at", "-id")[:RUNS_ABOUT])


def run_for(user: Actor, run_id: int) -> ListedRun:
    """One run. Raises `Forbidden`, `NotFound`."""
    require(user, READ_HEALTH)
    found = _describe(_runs().filter(pk=run_id))
    if not found:
        raise NotFound(f"There is no run {run_id}.")
    return found[0]


def findings_for(user: Actor) -> list[Finding]:
    """What is open, worst first. Raises `Forbidden`."""
    require(user, READ_HEALTH)
    return open_findings()


def say_silence() -> str:
    """Whether beat, or the watch itself, is silent, in a sentence; "" when both live.

    Pages say so themselves: nobody else would when all workers are away.
    """
    try:
        words = say_beat_silence()
        since = seconds_since(WATCH)
    except StoreUnavailable as error:
        return f"Whether beat is running cannot be said now. {error}"
    if words or (since is not None and since < WATCH_SILENT_SECONDS):
        return words
    return "No worker has looked for findings lately, so what is listed may be old. Are the workers running?"


def _describe_job(job: Job, now: dt.datetime) -> JobView | None:
    times = timetable_of(job)
    schedule = times.schedule
    if schedule is None:
        return None
    runs = _runs().filter(job=job.name, subject="")
    last = _describe(runs.ended().order_by("-ended_at", "-id")[:LAST_RUNS])
    return JobView(
        job=job,
        schedule=schedule,
        is_on=times.is_on,
        next_slots=schedule.next_slots(now, NEXT_RUNS) if times.is_on and not times.broken else [],
        last=last[::-1],
        open=_describe(runs.open().order_by("due_at", "id")),
        broken=times.broken,
    )


def _runs() -> JobRunQuerySet:
    return JobRun.objects.select_related("asked_by", "stop_asked_by")


def _describe(runs: JobRunQuerySet) -> list[ListedRun]:
    found = list(runs)
    jobs = {job.name: job for job in list_jobs()}
    subjects = _find_subjects(found)
    now = postgres_now()
    described = []
    for run in found:
        job = jobs.get(run.job)
        title, words = (str(job.title), str(job.words)) if job else (run.job, "")
        seconds = None if run.started_at is None else ((run.ended_at or now) - run.started_at).total_seconds()
        described.append(ListedRun(run, title, words, subjects.get(run.pk), seconds, run.due_at > now))
    return described


def _find_subjects(runs: Sequence[JobRun]) -> dict[int, Subject]:
    """The buckets that runs are about, by the run's id."""
    keys = {run.pk: (int(found[1]), int(found[2])) for run in runs if (found := _BUCKET.fullmatch(run.subject))}
    channels = Channel.objects.select_related("guild").in_bulk({channel_id for channel_id, _ in keys.values()})
    return {pk: Subject(channel_id, bucket, channels.get(channel_id)) for pk, (channel_id, bucket) in keys.items()}


def _midnight(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), tzinfo=dt.UTC)
