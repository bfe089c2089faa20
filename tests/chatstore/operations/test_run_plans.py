"""Due runs are found without reading the history of runs."""

from __future__ import annotations

import datetime as dt

from chatstore.models import JobRun
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import due_runs
from tests.plans import explain, rows_read

ENDED = 2_000


def test_due_runs_are_found_without_reading_ended_runs() -> None:
    now, job = postgres_now(), "plans"
    JobRun.objects.bulk_create(
        JobRun(job=job, state="done", due_at=now - dt.timedelta(minutes=number), ended_at=now)
        for number in range(ENDED)
    )
    due = JobRun.objects.create(job=job, due_at=now)
    try:
        found: list[JobRun] = []
        statements = explain(lambda: found.extend(due_runs()))
        assert due in found
        assert rows_read(statements, JobRun._meta.db_table) < ENDED
    finally:
        JobRun.objects.filter(job=job).delete()
