"""Monitor checks of runs that were missed or failed, of beat, and of nodes.

Each check reports all problems of its kind, so that findings close when a problem ends. A check that cannot read
its data raises `StoreUnavailable`, and open findings stay open. `now` is Postgres's.
"""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.db.models import Q, QuerySet

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.runs import ENDED, RunState, Severity
from chatstore.domain.schedules import Schedule, Slot
from chatstore.domain.texts import Duration, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Finding, JobRun
from chatstore.operations.findings.records import Problem, sync_findings
from chatstore.operations.jobs.definitions import Job, list_timetables
from chatstore.operations.jobs.runs import MAX_CATCH_UP
from chatstore.store import nodes
from chatstore.store.heartbeats import BEAT, seconds_since_heartbeat

MISSED_RUN, FAILED_RUN, HEARTBEAT_MISSING, NODE_DOWN = "missed run", "failed run", "heartbeat missing", "node down"
BROKEN_SCHEDULE = "broken schedule"

MISSED_AFTER = dt.timedelta(minutes=15)
"""Delay after which a run that has not started is reported."""

CRITICAL_FAILURES = 3
"""Number of consecutive failures that makes a finding critical."""

HEARTBEAT_TIMEOUT_SECONDS = 60.0
"""Beat records a heartbeat every five seconds; a gap this long is not just a restart."""

_FINISHED = (RunState.DONE, RunState.FAILED, RunState.STOPPED)


def check_runs(now: dt.datetime) -> None:
    """Check for runs not started within 15 minutes of their slot, failed jobs, and broken schedules."""
    known = {finding.subject: finding for finding in Finding.objects.open().filter(kind=MISSED_RUN)}
    missed, failed, broken = {}, {}, {}
    for times in list_timetables():
        job, schedule = times.job, times.schedule
        if schedule is None or not times.is_enabled:
            continue
        if times.broken:
            broken[job.name] = _describe_broken(job, times.broken)
            continue
        slot = _expected_slot(schedule, now=now, changed_at=times.changed_at, known=known.get(job.name))
        if slot is not None and (why := _why_missed(job, slot, now)):
            missed[job.name] = _describe_missed(job, schedule, slot, why)
        if (found := _find_failed(job)) is not None:
            failed[job.name] = found
    sync_findings(MISSED_RUN, missed)
    sync_findings(FAILED_RUN, failed)
    sync_findings(BROKEN_SCHEDULE, broken)


def missed_slots() -> dict[str, dt.datetime]:
    """Return the time of the slot that each job missed, by its name, as the last check found."""
    found = Finding.objects.open().filter(kind=MISSED_RUN, details__has_key="due_at").values_list("subject", "details")
    return {name: dt.datetime.fromisoformat(details["due_at"]) for name, details in found}


def _expected_slot(
    schedule: Schedule, *, now: dt.datetime, changed_at: dt.datetime | None, known: Finding | None
) -> Slot | None:
    """Return the last slot whose run should have started by now; None: there was none recently."""
    since = now - MAX_CATCH_UP
    if known is not None:
        # A missed slot stays missed, however long ago, until the job runs.
        since = min(since, dt.datetime.fromisoformat(known.details["due_at"]) - dt.timedelta(seconds=1))
    if changed_at is not None:
        since = max(since, changed_at)
    return schedule.last_slot(now - MISSED_AFTER, since=since)


def _why_missed(job: Job, slot: Slot, now: dt.datetime) -> str:
    """Return why the run of a slot was missed; "" if it ran, or a later one."""
    runs = JobRun.objects.filter(job=job.name, subject="")
    at_work = Q(state=RunState.RUNNING, lease_until__gte=now - MISSED_AFTER)
    if runs.filter(at_work | Q(state__in=_FINISHED, ended_at__gte=slot.at)).exists():
        return ""
    run = runs.filter(slot=slot.key).first()
    if run is not None and run.state not in ENDED:
        if run.attempts:
            return _("Its worker died and no other took over.")
        return _("No worker has claimed it.")
    # A job cannot miss a slot before its first run: the installation may be newer than the slot.
    if not runs.filter(due_at__lt=slot.at).exists():
        return ""
    return _("No scheduler polled for due runs.") if run is None else run.error


def _describe_missed(job: Job, schedule: Schedule, slot: Slot, why: str) -> Problem:
    details = {"job": job.name, "due_at": slot.at.isoformat()}
    summary = _(
        "%(job)s did not run at %(time)s on %(day)s (%(zone)s). %(reason)s",
        job=job.title,
        time=slot.wall.time(),
        day=slot.wall.date(),
        zone=schedule.zone,
        reason=why,
    )
    return Problem(Severity.WARNING, summary, details)


def _describe_broken(job: Job, why: str) -> Problem:
    return Problem(
        Severity.WARNING,
        _("%(job)s no longer runs on schedule: %(reason)s", job=job.title, reason=why),
        {"job": job.name},
    )


def _find_failed(job: Job) -> Problem | None:
    """Return the problem with a job whose last run failed, or None.

    Runs of a single bucket are not reported; the user who requested one sees its result.
    """
    ended = _ended_runs(job)
    if not ended or ended[0].state != RunState.FAILED:
        return None
    failed = ended[0]
    is_critical = len(ended) == CRITICAL_FAILURES and all(run.state == RunState.FAILED for run in ended)
    again = JobRun.objects.filter(retry_of=failed).open().first()
    if is_critical:
        summary = ngettext_lazy(
            "%(job)s failed %(count)s time in a row: %(error)s",
            "%(job)s failed %(count)s times in a row: %(error)s",
            CRITICAL_FAILURES,
            job=job.title,
            error=failed.error,
        )
    else:
        summary = _("%(job)s failed: %(error)s", job=job.title, error=failed.error)
    if again is not None:
        summary = _("%(summary)s It is retried at %(time)s.", summary=summary, time=again.due_at)
    return Problem(Severity.CRITICAL if is_critical else Severity.WARNING, summary, {"job": job.name, "run": failed.pk})


def _ended_runs(job: Job) -> list[JobRun]:
    runs: QuerySet[JobRun] = JobRun.objects.filter(
        job=job.name, subject="", state__in=(RunState.DONE, RunState.FAILED), ended_at__isnull=False
    )
    return list(runs.order_by("-ended_at", "-id")[:CRITICAL_FAILURES])


def check_beat(_now: dt.datetime) -> None:
    """Check whether beat is running."""
    summary = describe_missing_heartbeat()
    sync_findings(HEARTBEAT_MISSING, {"": Problem(Severity.CRITICAL, summary)} if summary else {})


def describe_missing_heartbeat() -> str:
    """Return a sentence if beat has stopped; "" if it is running. Raises `StoreUnavailable`."""
    since = seconds_since_heartbeat(BEAT)
    if since is None:
        return _(
            "The scheduler (Celery beat) has never sent a heartbeat, so due runs do not start. "
            "Start or restart its process: celery -A chatstore beat."
        )
    if since < HEARTBEAT_TIMEOUT_SECONDS:
        return ""
    return _(
        "The scheduler (Celery beat) has sent no heartbeat for %(time)s, so due runs do not start. "
        "Start or restart its process: celery -A chatstore beat.",
        time=Duration(since // 60 * 60),
    )


def check_nodes(_now: dt.datetime) -> None:
    """Check for nodes that are down."""
    try:
        hosts = nodes.list_states()
    except StoreUnavailable:
        # No node responded.
        hosts = [(host, False, settings.CASSANDRA["datacenter"]) for host in settings.CASSANDRA["contact_points"]]
    up = sum(is_up is True for _, is_up, _ in hosts)
    unknown = sum(is_up is None for _, is_up, _ in hosts)
    down = [(address, datacenter) for address, is_up, datacenter in hosts if is_up is False]
    sync_findings(
        NODE_DOWN,
        {
            address: Problem(
                Severity.CRITICAL,
                _describe_down(address, datacenter, up=up, unknown=unknown, hosts=len(hosts)),
                {"node": address},
            )
            for address, datacenter in down
        },
    )


def _describe_down(address: str, datacenter: str, *, up: int, unknown: int, hosts: int) -> str:
    if unknown:
        return _(
            "Node %(node)s (%(datacenter)s) is down. Of %(hosts)s nodes, up: %(up)s, unknown: %(unknown)s.",
            node=address,
            datacenter=datacenter,
            hosts=hosts,
            up=up,
            unknown=unknown,
        )
    return ngettext_lazy(
        "Node %(node)s (%(datacenter)s) is down: %(count)s of %(hosts)s is up.",
        "Node %(node)s (%(datacenter)s) is down: %(count)s of %(hosts)s are up.",
        up,
        node=address,
        datacenter=datacenter,
        hosts=hosts,
    )
