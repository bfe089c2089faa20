"""Maintenance acts in the audit log.

chatstore does not know the audit log, so its operations are called here, each in one transaction with its entry. They
check the rights. What runs do later is recorded by the runs themselves.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.db import transaction

from chatstore.domain.schedules import Schedule
from chatstore.models import Finding, JobRun
from chatstore.models.users import User
from chatstore.operations.bucket_jobs.repair import start_from_command, stop_from_command
from chatstore.operations.findings import records
from chatstore.operations.jobs import definitions, runs
from chatstore.operations.monitoring import console
from moderation.operations.access.audit import record_action


def request_run(name: str, *, actor: User, subject: str = "") -> JobRun:
    """Request a run. Raises as chatstore's function."""
    with transaction.atomic():
        run = runs.request_run(name, actor=actor, subject=subject)
        _record("run_requested", run, actor)
    return run


def request_run_now(name: str, *, actor: User) -> JobRun:
    """Request a run of a scheduled job. Raises as chatstore's function."""
    with transaction.atomic():
        run = console.request_run_now(name, actor=actor)
        _record("run_requested", run, actor)
    return run


def repeat_run(run_id: int, *, actor: User) -> JobRun:
    """Repeat a run that has ended. Raises as chatstore's function."""
    with transaction.atomic():
        run = runs.repeat_run(run_id, actor=actor)
        _record("run_requested", run, actor, repeated=str(run_id))
    return run


def stop_run(run_id: int, *, actor: User) -> None:
    """Stop a run. Recorded only if there was anything to stop. Raises as chatstore's function."""
    with transaction.atomic():
        if runs.stop_run(run_id, actor=actor):
            _record("run_stopped", JobRun.objects.get(pk=run_id), actor)


def start_repair(job: str, subject: str, *, actor: User) -> JobRun:
    """Create the run of a repair for a management command. Raises as chatstore's function."""
    with transaction.atomic():
        run = start_from_command(job, subject)
        _record("run_requested", run, actor)
    return run


def stop_repair(run_id: int, *, actor: User) -> None:
    """End the run of a repair that was interrupted at the terminal."""
    with transaction.atomic():
        stop_from_command(run_id)
        _record("run_stopped", JobRun.objects.get(pk=run_id), actor)


def set_schedule(name: str, schedule: Schedule, *, is_enabled: bool, actor: User) -> None:
    """Set the schedule of a job; the entry has the old and the new one. Raises as chatstore's function."""
    with transaction.atomic():
        before = definitions.timetable_of(definitions.job_named(name))
        definitions.set_schedule(name, schedule, is_enabled=is_enabled, actor=actor)
        details = {
            "job": name,
            "before": _describe(before.schedule, is_enabled=before.is_enabled),
            "after": _describe(schedule, is_enabled=is_enabled),
        }
        record_action("schedule_changed", actor=actor, details=details)


def acknowledge_finding(finding_id: int, *, actor: User) -> Finding:
    """Acknowledge a finding, and return it. Raises as chatstore's function."""
    with transaction.atomic():
        records.acknowledge_finding(finding_id, actor=actor)
        finding = Finding.objects.get(pk=finding_id)
        details = {"finding": finding.kind, "subject": finding.subject, "summary": str(finding.summary)}
        record_action("finding_acknowledged", actor=actor, details=details)
    return finding


def _record(action: str, run: JobRun, actor: User, **details: str) -> None:
    """Record an act on a run. The subject of a run is a bucket ("channel:bucket"), a channel, or nothing."""
    channel_id = None
    with suppress(ValueError):
        channel_id = int(run.subject.partition(":")[0])
    named = {"job": run.job, "run": str(run.pk), **details}
    if run.subject:
        named["subject"] = run.subject
    record_action(action, actor=actor, channel_id=channel_id, details=named)


def _describe(schedule: Schedule | None, *, is_enabled: bool) -> dict[str, Any] | None:
    if schedule is None:
        return None
    hours = [f"{time:%H:%M}" for time in (schedule.opens, schedule.closes) if time is not None]
    return {"cron": schedule.cron, "zone": schedule.zone, "hours": hours, "is_enabled": is_enabled}
