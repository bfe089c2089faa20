"""A job whose last run failed is reported, as urgent the third time, until a run succeeds."""

from __future__ import annotations

import datetime as dt

import pytest

from chatstore.domain.runs import RunState, Severity
from chatstore.models import Finding, JobRun
from chatstore.operations.monitoring.checks import FAILED_RUN, look_at_runs
from tests.chatstore.operations.jobs import ended_run, only_job

MORNING = dt.datetime(2026, 11, 20, 6, tzinfo=dt.UTC)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> str:
    return only_job(monkeypatch)


def fail(job: str, *, hour: int) -> JobRun:
    return ended_run(job, at=MORNING - dt.timedelta(hours=5 - hour), state=RunState.FAILED, error="A node is down.")


def open_one(job: str) -> Finding | None:
    look_at_runs(MORNING)
    return Finding.objects.filter(kind=FAILED_RUN, subject=job, closed_at=None).first()


def test_a_failure_is_told_once_with_its_error_and_over_with_the_next_good_run(job: str) -> None:
    failed = fail(job, hour=1)
    first, again = open_one(job), open_one(job)
    assert first is not None
    assert again is not None
    assert first.pk == again.pk
    assert first.words.endswith("failed: A node is down.")
    assert (first.severity, first.details) == (Severity.AMBER, {"job": job, "run": failed.pk})
    ended_run(job, at=MORNING)
    assert open_one(job) is None


def test_three_failures_in_a_row_are_urgent(job: str) -> None:
    for hour in (1, 2, 3):
        fail(job, hour=hour)
    found = open_one(job)
    assert found is not None
    assert found.severity == Severity.RED
    assert "failed 3 times in a row" in found.words


def test_a_run_that_is_tried_again_says_when(job: str) -> None:
    failed = fail(job, hour=1)
    JobRun.objects.create(job=job, due_at=MORNING + dt.timedelta(minutes=30), again_of=failed)
    found = open_one(job)
    assert found is not None
    assert found.words.endswith("It is retried at 06:30 UTC.")


def test_a_failed_run_of_one_bucket_is_its_asker_s_to_see(job: str) -> None:
    JobRun.objects.filter(pk=fail(job, hour=1).pk).update(subject="5:7")
    assert open_one(job) is None
