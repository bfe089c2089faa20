"""Maintenance jobs that no other test uses."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest

from chatstore.domain.runs import RunState
from chatstore.domain.schedules import Schedule
from chatstore.models import JobRun
from chatstore.operations.jobs import definitions
from chatstore.operations.jobs.definitions import Job

BERLIN = Schedule("30 2 * * *", "Europe/Berlin")


def configure_only_job(
    monkeypatch: pytest.MonkeyPatch, *, schedule: Schedule | None = BERLIN, max_attempts: int = 1
) -> str:
    """Register a job under a fresh name, and no other; by default each night at half past two in Berlin."""
    job = make_job(schedule, max_attempts=max_attempts)
    register_only(monkeypatch, job)
    return job.name


def make_job(schedule: Schedule | None = BERLIN, *, max_attempts: int = 1) -> Job:
    """Return a job under a fresh name, which is not registered."""
    name = f"job-{uuid.uuid4().hex[:8]}"
    return Job(name, do_nothing, "A test's job", "What a test does", schedule, max_attempts=max_attempts)


def register_only(monkeypatch: pytest.MonkeyPatch, *jobs: Job) -> None:
    """Make these the only jobs for as long as a test runs."""
    monkeypatch.setattr(definitions, "_jobs", {})
    definitions.register_jobs(*jobs)


def do_nothing(_claim: object) -> dict[str, int]:
    return {"buckets": 3}


def make_ended_run(
    job: str, *, at: dt.datetime, state: RunState = RunState.DONE, slot: str | None = None, error: str = ""
) -> JobRun:
    """Create a run that started and ended at the same time."""
    return JobRun.objects.create(
        job=job, slot=slot, due_at=at, started_at=at, ended_at=at, state=state, error=error, attempts=1
    )
