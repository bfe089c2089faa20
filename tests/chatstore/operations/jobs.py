"""Jobs that no other test has."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from pytest_django import Settings

from chatstore.domain.runs import RunState
from chatstore.models import JobRun


def only_job(settings: Settings, *, schedule: tuple[Any, ...] | None = ("30 2 * * *", "Europe/Berlin")) -> str:
    """A job under a fresh name, and no other; by default each night at half past two in Berlin."""
    name = f"job-{uuid.uuid4().hex[:8]}"
    entry: dict[str, Any] = {"work": f"{__name__}.do_nothing", "words": "What a test does"}
    settings.MAINTENANCE_JOBS = {name: entry | ({"schedule": schedule} if schedule else {})}
    return name


def do_nothing(_claim: object) -> dict[str, int]:
    return {"buckets": 3}


def ended_run(
    job: str, *, at: dt.datetime, state: RunState = RunState.DONE, slot: str | None = None, error: str = ""
) -> JobRun:
    """A run that began and ended at a moment."""
    return JobRun.objects.create(
        job=job, slot=slot, due_at=at, started_at=at, ended_at=at, state=state, error=error, tries=1
    )
