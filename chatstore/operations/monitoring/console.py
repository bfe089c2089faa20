"""Maintenance as shown to operators: each job with its schedule and past runs, and the history of all runs."""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import Exists, OuterRef, Q
from django.db.models.expressions import RawSQL

from chatstore.domain.buckets import bucket_days
from chatstore.domain.errors import BadInput, NotFound, StoreUnavailable
from chatstore.domain.runs import ENDED, RunState
from chatstore.domain.schedules import Schedule, Slot
from chatstore.domain.texts import Days
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, Finding, JobRun
from chatstore.models.maintenance import JobRunQuerySet
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import open_findings
from chatstore.operations.jobs.definitions import Job, Timetable, job_named, list_jobs, list_timetables, timetable_of
from chatstore.operations.jobs.runs import attempts_of, request_run
from chatstore.operations.monitoring.checks import describe_missing_heartbeat, missed_slots
from chatstore.operations.rights import READ_HEALTH, require, restrict, scope_for
from chatstore.store import cassandra
from chatstore.store.heartbeats import MONITOR, seconds_since_heartbeat

Actor = AbstractUser | AnonymousUser

NEXT_RUNS, LAST_RUNS = 5, 30
MAX_SUBJECT_RUNS = 12
RUNS_PER_PAGE = 30
FAILED_RUNS = 8
"""Maximum number of failed runs on the maintenance page; the history lists the others."""

FAILED_WITHIN = dt.timedelta(days=7)
"""Older failures that were not repeated are only in the history."""

MONITOR_TIMEOUT_SECONDS = 300.0
"""The monitor runs its checks every minute."""

_BUCKET = re.compile(r"(-?\d{1,20}):(-?\d{1,9})")

_LAST_RUNS = """
SELECT run.id FROM unnest(%s::text[]) AS scheduled (name)
CROSS JOIN LATERAL (
    SELECT id FROM chatstore_jobrun
    WHERE job = scheduled.name AND subject = '' AND state = ANY(%s)
    ORDER BY ended_at DESC, id DESC LIMIT %s
) AS run
"""
"""The ids of each job's last runs, each job's by the index `run_by_subject`."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a run: a bucket of a channel; the channel may no longer exist."""

    channel_id: int
    bucket: int
    channel: Channel | None

    @property
    def label(self) -> str:
        """Channel and days, for example "#general (Tidewalkers), 11–20 March 2024"."""
        return _("%(channel)s, %(days)s", channel=self.channel_label, days=self.days)

    @property
    def channel_label(self) -> str:
        """Name of the channel with its guild, or its id."""
        return self.channel.full_name if self.channel else _("channel %(id)s", id=str(self.channel_id))

    @property
    def days(self) -> Days:
        """Days of the bucket."""
        return Days(*bucket_days(self.bucket))


@dataclass(frozen=True, slots=True)
class ListedRun:
    """Run as shown on a page.

    title, description: of its job; empty description if the job no longer exists. subject: the bucket that it
    is about, if any. seconds: duration so far; None: not started. is_upcoming: it is scheduled for later. attempt: its
    number among the attempts of a scheduled run, of which there are at most `max_attempts`; 0: it has none.
    needs_cassandra: as its job says; False if that no longer exists.
    """

    run: JobRun
    title: str
    description: str
    subject: Subject | None
    seconds: float | None
    is_upcoming: bool
    attempt: int = 0
    max_attempts: int = 1
    needs_cassandra: bool = False

    @property
    def has_ended(self) -> bool:
        return self.run.state in ENDED

    @property
    def shows_attempt(self) -> bool:
        """True if it failed, or retries a run that did."""
        return self.attempt > 1 or (self.attempt == 1 and self.run.state == RunState.FAILED)


@dataclass(frozen=True, slots=True)
class JobView:
    """Job with a schedule. next_slot: None if it is disabled. last: newest last.

    broken: why the stored schedule is invalid; `schedule` is then the default, which is not used either.
    missed_at: time of its latest slot if the monitor found that no run followed it.
    """

    job: Job
    schedule: Schedule
    is_enabled: bool
    next_slot: Slot | None
    last: Sequence[ListedRun]
    open: Sequence[ListedRun]
    broken: str = ""
    missed_at: dt.datetime | None = None

    @property
    def waiting(self) -> ListedRun | None:
        """Its run that is due and waits for a worker, if any."""
        due = (entry for entry in self.open if entry.run.state == RunState.QUEUED and not entry.is_upcoming)
        return next(due, None)

    @property
    def may_run_now(self) -> bool:
        """True if no run of it is due or running; a run scheduled for later would be brought forward."""
        return all(entry.is_upcoming for entry in self.open)

    @property
    def counts(self) -> dict[str, int]:
        """Number of the last runs by final state, in the order of the states."""
        states = [entry.run.state for entry in self.last]
        return {state.value: states.count(state) for state in RunState if state in states}


@dataclass(frozen=True, slots=True)
class RunPage:
    """Page of the history, newest first. older: exclusive cursor of the next page, or None."""

    runs: Sequence[ListedRun]
    older: int | None


def describe_jobs(user: Actor, *, last: int = LAST_RUNS, now: dt.datetime | None = None) -> list[JobView]:
    """Return the jobs with a schedule. last: past runs of each. now: Postgres's, if known. Raises `Forbidden`."""
    require(user, READ_HEALTH)
    now = now or postgres_now()
    open_by_job = _by_job(_describe(_runs().open().filter(subject="").order_by("due_at", "id"), now))
    timetables = list_timetables()
    past_by_job = _last_runs([times.job for times in timetables], now, last=last)
    views = (
        _describe_job(times, now, open_by_job[times.job.name], past_by_job[times.job.name]) for times in timetables
    )
    missed = missed_slots()
    return [replace(view, missed_at=missed.get(view.job.name)) for view in views if view is not None]


def describe_job(user: Actor, name: str) -> JobView:
    """Return one of them. Raises `Forbidden`, `NotFound` also for a job without a schedule."""
    require(user, READ_HEALTH)
    job, now = job_named(name), postgres_now()
    runs = _runs().open().filter(job=job.name, subject="").order_by("due_at", "id")
    past = _last_runs([job], now, last=LAST_RUNS)
    view = _describe_job(timetable_of(job), now, _describe(runs, now), past[job.name])
    if view is None:
        raise NotFound(_("The job “%(name)s” has no schedule; it only runs on request.", name=name))
    return view


def next_slots(schedule: Schedule) -> list[Slot]:
    """Return its next five slots."""
    return schedule.next_slots(postgres_now(), NEXT_RUNS)


def request_run_now(name: str, *, actor: User) -> JobRun:
    """Request a run of a scheduled job now, without changing its next slot. Raises as `request_run`."""
    if job_named(name).schedule is None:
        raise BadInput(_("This job runs on one bucket. Start it from the bucket’s page under channel health."))
    return request_run(name, actor=actor)


def open_runs(user: Actor, *, limit: int | None = None) -> list[ListedRun]:
    """Return running, then queued runs, longest waiting first. Raises `Forbidden`."""
    require(user, READ_HEALTH)
    return _describe(_runs().open().order_by("-state", "due_at", "id")[:limit])


def current_runs(user: Actor, jobs: Collection[str], subjects: Collection[str] = ()) -> dict[str, ListedRun]:
    """Return the runs that are due or running: of jobs by their name, of buckets by the subject. Raises `Forbidden`."""
    require(user, READ_HEALTH)
    if not jobs and not subjects:
        return {}
    wanted = _runs().open().filter(Q(job__in=jobs, subject="") | Q(subject__in=subjects))
    found = _describe(wanted.order_by("state", "due_at", "id"))
    return {entry.run.subject or entry.run.job: entry for entry in found if not entry.is_upcoming}


def count_open_runs(user: Actor) -> int:
    """Return the number of running and queued runs. Raises `Forbidden`."""
    require(user, READ_HEALTH)
    return JobRun.objects.open().count()


def failed_runs(user: Actor) -> list[ListedRun]:
    """Return the latest failure of each job and subject in the last days that no later run has followed.

    At most `FAILED_RUNS`, newest first. Raises `Forbidden`.
    """
    require(user, READ_HEALTH)
    later = JobRun.objects.filter(job=OuterRef("job"), subject=OuterRef("subject"), ended_at__gt=OuterRef("ended_at"))
    failed = _runs().filter(
        ~Exists(later.filter(state__in=(RunState.DONE, RunState.FAILED))),
        # Failures of jobs that no longer exist cannot be fixed.
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
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    before: int | None = None,
) -> RunPage:
    """Return a page of all runs that were requested or due, from `since` until before `until`.

    Raises `Forbidden`, `NotFound` for an unknown job, `BadInput` for an unknown state.
    """
    require(user, READ_HEALTH)
    runs = _runs().order_by("-id")
    if job:
        runs = runs.filter(job=job_named(job).name)
    if state:
        if state not in set(RunState):
            raise BadInput(_("“%(state)s” is not a state of runs.", state=state))
        runs = runs.filter(state=state)
    if since is not None:
        runs = runs.filter(due_at__gte=since)
    if until is not None:
        runs = runs.filter(due_at__lt=until)
    if before is not None:
        runs = runs.filter(pk__lt=before)
    found = _describe(runs[: RUNS_PER_PAGE + 1])
    shown = found[:RUNS_PER_PAGE]
    return RunPage(shown, older=shown[-1].run.pk if len(found) > RUNS_PER_PAGE else None)


def runs_for_subject(user: Actor, subject: str) -> list[ListedRun]:
    """Return the last runs about a channel ("<id>") or bucket ("<id>:<bucket>"), newest first. Raises `Forbidden`."""
    require(user, READ_HEALTH)
    return _describe(_runs().filter(subject=subject).order_by("-due_at", "-id")[:MAX_SUBJECT_RUNS])


def run_for(user: Actor, run_id: int) -> ListedRun:
    """Return one run. Raises `Forbidden`, `NotFound`."""
    require(user, READ_HEALTH)
    found = _describe(_runs().filter(pk=run_id))
    if not found:
        raise NotFound(_("Run %(id)s does not exist.", id=str(run_id)))
    return found[0]


def findings_for(user: Actor) -> list[Finding]:
    """Return open findings, worst first. Raises `Forbidden`."""
    require(user, READ_HEALTH)
    found, scope = open_findings(), scope_for(user, READ_HEALTH)
    if scope.is_everything:
        return found
    # Their texts name channels.
    ids = {finding.pk: int(finding.details["channel"]) for finding in found if "channel" in finding.details}
    channels = restrict(Channel.objects.all(), scope, guild="guild_id", channel="pk").in_bulk(set(ids.values()))
    return [finding for finding in found if finding.pk not in ids or ids[finding.pk] in channels]


def describe_stopped_services() -> str:
    """Return a sentence if beat or the monitor has stopped; "" if both are running.

    Pages show it themselves, because no notification is sent while all workers are down.
    """
    try:
        problem = describe_missing_heartbeat()
        since = seconds_since_heartbeat(MONITOR)
    except StoreUnavailable as error:
        return _("Could not check whether beat is running. %(error)s", error=error.text)
    if problem or (since is not None and since < MONITOR_TIMEOUT_SECONDS):
        return problem
    return _(
        "No worker has run the monitor checks for 5 minutes, so the findings may be outdated. "
        "Check that the workers are running."
    )


def describe_cassandra_outage() -> str:
    """Return a sentence if the driver knows that no node of Cassandra is up; "" otherwise.

    Neither connects nor sends a statement: during an outage, pages would wait for that. A process that has not
    connected yet knows of an outage only if it has just tried to.
    """
    hosts = cassandra.connected_hosts()
    is_down = bool(hosts) and all(is_up is False for _host, is_up, _dc in hosts or ())
    return _("No node of Cassandra is up.") if is_down or cassandra.has_failed_to_connect() else ""


def _last_runs(jobs: Sequence[Job], now: dt.datetime, *, last: int) -> dict[str, list[ListedRun]]:
    """Return the last runs of each job that have ended, newest last, by its name."""
    params = [[job.name for job in jobs], [state.value for state in ENDED], last]
    runs = _runs().filter(id__in=RawSQL(_LAST_RUNS, params))  # noqa: S611 - a constant
    return _by_job(_describe(runs.order_by("ended_at", "id"), now))


def _by_job(entries: Sequence[ListedRun]) -> dict[str, list[ListedRun]]:
    found: dict[str, list[ListedRun]] = defaultdict(list)
    for entry in entries:
        found[entry.run.job].append(entry)
    return found


def _describe_job(
    times: Timetable, now: dt.datetime, waiting: Sequence[ListedRun], past: Sequence[ListedRun]
) -> JobView | None:
    job, schedule = times.job, times.schedule
    if schedule is None:
        return None
    return JobView(
        job=job,
        schedule=schedule,
        is_enabled=times.is_enabled,
        next_slot=next(schedule.slots_after(now), None) if times.is_enabled and not times.broken else None,
        last=past,
        open=waiting,
        broken=times.broken,
    )


def _runs() -> JobRunQuerySet:
    """Return the runs with what they are described by, also the earlier attempts of each."""
    retries = max((job.max_attempts for job in list_jobs()), default=1) - 1
    earlier = ["__".join(["retry_of"] * retries)] if retries else []
    return JobRun.objects.select_related("requested_by", "stop_requested_by", *earlier)


def _describe(runs: JobRunQuerySet, now: dt.datetime | None = None) -> list[ListedRun]:
    found = list(runs)
    jobs = {job.name: job for job in list_jobs()}
    subjects = _find_subjects(found)
    now = now or postgres_now()
    described = []
    for run in found:
        job = jobs.get(run.job)
        title, description = (job.title, job.description) if job else (run.job, "")
        seconds = None if run.started_at is None else ((run.ended_at or now) - run.started_at).total_seconds()
        attempt, max_attempts = (_attempt_of(run), job.max_attempts) if job and job.max_attempts > 1 else (0, 1)
        described.append(
            ListedRun(
                run,
                title,
                description,
                subjects.get(run.pk),
                seconds,
                is_upcoming=run.due_at > now,
                attempt=attempt,
                max_attempts=max_attempts,
                needs_cassandra=job is not None and job.needs_cassandra,
            )
        )
    return described


def _attempt_of(run: JobRun) -> int:
    """Return the number of a run among the attempts of its slot, which a user may have brought forward; 0 without."""
    attempts = attempts_of(run)
    return 0 if attempts[-1].slot is None else len(attempts)


def _find_subjects(runs: Sequence[JobRun]) -> dict[int, Subject]:
    """Return the buckets that runs are about, by id of the run."""
    keys = {run.pk: (int(found[1]), int(found[2])) for run in runs if (found := _BUCKET.fullmatch(run.subject))}
    channels = Channel.objects.select_related("guild").in_bulk({channel_id for channel_id, _ in keys.values()})
    return {pk: Subject(channel_id, bucket, channels.get(channel_id)) for pk, (channel_id, bucket) in keys.items()}
