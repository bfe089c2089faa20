"""Data for the screenshots of maintenance: a month of nightly runs, a failed one, a running one, and findings."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from chatstore.domain.buckets import bucket_days, bucket_of
from chatstore.domain.runs import RunState, Severity
from chatstore.models import Channel, Finding, JobRun, JobSchedule
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.channels import MISSING_SURVIVORS, store_states
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.operations.monitoring.checks import BROKEN_SCHEDULE
from moderation.presentation.formats import format_days
from tests.pages.serving import Site
from tests.shots.health import DEAD, UnhealthyChannel

NIGHTS = 34
BROKEN = "bookkeeping"
"""The job with an invalid schedule."""
DOWN = "Node 127.0.0.2 is down, and a repair needs every replica."
UNAVAILABLE = "A Cassandra replica did not answer in time."

_FAKE_HEARTBEATS = (
    "from chatstore.store.redis import redis_client as r; s = r().time()[0] + 7200; "
    "r().set('seen:beat', s); r().set('seen:monitor', s)"
)

_FILL_LISTS = "from chatstore.store import nodes, top_partitions as t; t.read_all_live(nodes.list_addresses())"


@dataclass(frozen=True, slots=True)
class MaintenanceScene:
    """Runs that the list of pages refers to."""

    failed: int
    running: int
    done: int


def replace_runs() -> None:
    """Replace the runs of tests and earlier scenes by a month of nightly runs.

    Before any other run of the scene: the list of runs is in the order of their ids.
    """
    # Those that tests have left may be repeated by others, which protects them.
    JobRun.objects.update(retry_of=None)
    JobRun.objects.all().delete()
    midnight = postgres_now().replace(hour=0, minute=0, second=0, microsecond=0)
    for job, at, result in (
        ("repair", dt.timedelta(hours=2, minutes=30), {"nodes": 2, "tables": 7}),
        ("probe", dt.timedelta(minutes=30), {"channels": 412, "buckets with deletes": 36}),
        ("bookkeeping", dt.timedelta(hours=5), {"buckets": 1_204, "found_empty": 178}),
    ):
        for nights in range(NIGHTS, 0, -1):
            due_at = midnight - dt.timedelta(days=nights) + at
            state = _state_of(job, nights)
            _make_run(job, due_at, state, result if state == RunState.DONE else {}, _describe_error(state))


def make_maintenance_scene(
    otto: User, *, channel_id: int, message_id: int, unhealthy: UnhealthyChannel
) -> MaintenanceScene:
    """Create the runs of today and the open findings. unhealthy: has the figures of the heavy bucket."""
    now = postgres_now()
    failed = _make_run("authorless", now - dt.timedelta(hours=3), RunState.FAILED, {}, UNAVAILABLE)
    bucket = bucket_of(message_id)
    done = _make_run("probe", now - dt.timedelta(minutes=10), RunState.DONE, {"messages": 1_204, "tombstones": 2}, "")
    JobRun.objects.filter(pk=done.pk).update(subject=f"{channel_id}:{bucket}", requested_by=otto)
    running = JobRun.objects.create(
        job="repair_bucket",
        subject=f"{channel_id}:{bucket}",
        state=RunState.RUNNING,
        due_at=now - dt.timedelta(minutes=4),
        started_at=now - dt.timedelta(minutes=4),
        requested_by=otto,
        attempts=1,
        lease_until=now + dt.timedelta(hours=4),
        progress={"done": 1, "total": 2, "what": "measuring the bucket again"},
    )
    JobSchedule.objects.update_or_create(
        job=BROKEN, defaults={"cron": "0 5 * * *", "zone": "Atlantis/Poseidonis", "changed_at": now}
    )
    _open_findings(channel_id, bucket, unhealthy, failed)
    return MaintenanceScene(failed.pk, running.pk, done.pk)


def finish_maintenance_scene(maintenance: MaintenanceScene) -> None:
    """Close what exists only for the screenshots, so that the next test run finds no running job."""
    JobRun.objects.filter(pk=maintenance.running).update(
        state=RunState.STOPPED, lease_until=None, ended_at=postgres_now()
    )
    JobSchedule.objects.filter(pk=BROKEN).delete()
    _close_findings()


def fake_heartbeats(site: Site) -> None:
    """Record heartbeats as if beat and the monitor were running beside the site."""
    site.manage("shell", "--no-imports", "-c", _FAKE_HEARTBEATS)


def fill_lists(site: Site) -> None:
    """Let both nodes list their largest partitions, as at the end of a repair."""
    site.manage("shell", "--no-imports", "-c", _FILL_LISTS)


def _close_findings() -> None:
    is_open = Finding.objects.open()
    channel_ids = {finding.channel_id for finding in is_open if finding.channel_id is not None}
    is_open.update(closed_at=postgres_now())
    store_states(channel_ids)


def _open_findings(channel_id: int, bucket: int, unhealthy: UnhealthyChannel, failed: JobRun) -> None:
    _close_findings()
    place = f"{Channel.objects.get(pk=channel_id).full_name}, {format_days(*bucket_days(bucket))}"
    heavy = f"{unhealthy.channel.full_name}, {format_days(*bucket_days(unhealthy.dead))}"
    steps = f"{heavy}: A full read scans {DEAD:,} tombstones."
    dead = {"tombstones": DEAD}
    summary = f"Authorless rows failed: {UNAVAILABLE}"
    open_finding("failed run", "authorless", Problem(Severity.WARNING, summary, {"job": failed.job, "run": failed.pk}))
    open_finding("heavy bucket", f"{unhealthy.channel.pk}:{unhealthy.dead}", Problem(Severity.CRITICAL, steps, dead))
    lost = f"2 messages that should have been kept are missing after a purge in {place}."
    open_finding(MISSING_SURVIVORS, f"{channel_id}:{bucket}", Problem(Severity.CRITICAL, lost))
    why = "Unknown time zone “Atlantis/Poseidonis”. Enter one such as Europe/Berlin or UTC."
    broken = f"Reconcile ledger no longer runs on schedule: {why}"
    open_finding(BROKEN_SCHEDULE, BROKEN, Problem(Severity.WARNING, broken))


def _state_of(job: str, nights: int) -> RunState:
    if job == "repair" and nights in (11, 12):
        return RunState.FAILED
    if job == "bookkeeping" and nights == 7:
        return RunState.STOPPED
    if job == "probe" and nights in (20, 3):
        return RunState.SKIPPED
    return RunState.DONE


def _describe_error(state: RunState) -> str:
    text = {RunState.FAILED: DOWN, RunState.SKIPPED: "Another run of the same job is still running."}
    return text.get(state, "")


def _make_run(job: str, due_at: dt.datetime, state: RunState, result: dict[str, int], error: str) -> JobRun:
    return JobRun.objects.create(
        job=job,
        due_at=due_at,
        started_at=due_at,
        ended_at=due_at + dt.timedelta(seconds=74 + due_at.day),
        state=state,
        result=result,
        error=error,
        attempts=1,
    )
