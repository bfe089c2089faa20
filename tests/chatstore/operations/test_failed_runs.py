"""A job whose last run failed is reported, as critical the third time, until a run succeeds."""

from __future__ import annotations

import datetime as dt

import pytest

from chatstore.domain.runs import RunState, Severity
from chatstore.models import Finding, JobRun
from chatstore.operations.monitoring.checks import FAILED_RUN, check_runs
from tests.chatstore.operations.jobs import configure_only_job, make_ended_run

MORNING = dt.datetime(2026, 11, 20, 6, tzinfo=dt.UTC)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> str:
    return configure_only_job(monkeypatch)


def fail(job: str, *, hour: int) -> JobRun:
    return make_ended_run(
        job, at=MORNING - dt.timedelta(hours=5 - hour), state=RunState.FAILED, error="A node is down."
    )


def open_one(job: str) -> Finding | None:
    check_runs(MORNING)
    return Finding.objects.filter(kind=FAILED_RUN, subject=job, closed_at=None).first()


def test_a_failure_is_reported_once_and_closed_by_the_next_successful_run(job: str) -> None:
    failed = fail(job, hour=1)
    first, again = open_one(job), open_one(job)
    assert first is not None
    assert again is not None
    assert first.pk == again.pk
    assert first.summary.endswith("failed: A node is down.")
    assert (first.severity, first.details) == (Severity.WARNING, {"job": job, "run": failed.pk})
    make_ended_run(job, at=MORNING)
    assert open_one(job) is None


def test_three_failures_in_a_row_are_critical(job: str) -> None:
    for hour in (1, 2, 3):
        fail(job, hour=hour)
    found = open_one(job)
    assert found is not None
    assert found.severity == Severity.CRITICAL
    assert "failed 3 times in a row" in found.summary


def test_a_run_that_will_be_retried_shows_when(job: str) -> None:
    failed = fail(job, hour=1)
    JobRun.objects.create(job=job, due_at=MORNING + dt.timedelta(minutes=30), retry_of=failed)
    found = open_one(job)
    assert found is not None
    assert found.summary.endswith("It is retried at 20 November, 06:30 UTC.")


def test_a_failed_run_of_one_bucket_is_reported_to_its_requester_only(job: str) -> None:
    JobRun.objects.filter(pk=fail(job, hour=1).pk).update(subject="5:7")
    assert open_one(job) is None
