"""A stored schedule that is no longer valid stops only its own job and is reported."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.runs import RunState, Severity
from chatstore.domain.schedules import Schedule
from chatstore.models import Finding, JobRun, JobSchedule
from chatstore.models.users import User
from chatstore.operations.jobs.definitions import set_schedule
from chatstore.operations.jobs.runs import create_due_runs, request_run, work_on_run
from chatstore.operations.monitoring.checks import BROKEN_SCHEDULE, check_runs
from tests.chatstore.operations.jobs import make_job, register_only

DUE = dt.datetime(2026, 11, 20, 1, 30, tzinfo=dt.UTC)
"""02:30 in Berlin."""


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Register a job whose time zone no longer exists, and a valid job after it."""
    broken, sound = make_job(), make_job()
    register_only(monkeypatch, broken, sound)
    JobSchedule.objects.create(
        job=broken.name, cron="30 2 * * *", zone="Atlantis/Poseidonis", changed_at="2026-01-01T00:00Z"
    )
    return broken.name, sound.name


def list_open(job: str) -> list[Finding]:
    return list(Finding.objects.filter(kind=BROKEN_SCHEDULE, subject=job, closed_at=None))


def test_the_other_jobs_continue(jobs: tuple[str, str]) -> None:
    _, sound = jobs
    assert [run.job for run in create_due_runs(DUE)] == [sound]


def test_a_broken_schedule_is_a_finding_until_it_is_corrected(jobs: tuple[str, str], ada: User) -> None:
    broken, sound = jobs
    check_runs(DUE)
    (found,) = list_open(broken)
    assert found.severity == Severity.WARNING
    assert "no longer runs on schedule: Unknown time zone “Atlantis/Poseidonis”." in found.summary
    assert list_open(sound) == []
    set_schedule(broken, Schedule("30 2 * * *", "UTC"), is_enabled=True, actor=ada)
    check_runs(DUE)
    assert list_open(broken) == []


def test_a_disabled_schedule_is_not_a_finding(jobs: tuple[str, str]) -> None:
    broken, _ = jobs
    JobSchedule.objects.filter(pk=broken).update(is_enabled=False)
    check_runs(DUE)
    assert list_open(broken) == []


def test_a_run_that_is_already_queued_fails_with_the_reason(jobs: tuple[str, str]) -> None:
    broken, _ = jobs
    waiting = JobRun.objects.create(job=broken, slot="2026-11-20T02:30", due_at=DUE)
    run = work_on_run(waiting.pk)
    assert run is not None
    assert run.state == RunState.FAILED
    assert run.error.startswith("Unknown time zone “Atlantis/Poseidonis”.")


def test_it_can_still_be_run_manually(jobs: tuple[str, str], otto: User) -> None:
    broken, _ = jobs
    run = work_on_run(request_run(broken, actor=otto).pk)
    assert run is not None
    assert (run.state, run.error) == (RunState.DONE, "")


def test_its_pages_show_the_error_and_allow_a_correction(
    jobs: tuple[str, str], otto: User, sign_in: Callable[[User], Client]
) -> None:
    broken, _ = jobs
    page = sign_in(otto)
    for path in ("/maintenance/", f"/maintenance/jobs/{broken}/"):
        html = page.get(path).content.decode()
        assert "Unknown time zone “Atlantis/Poseidonis”." in html
    assert "schedule is invalid" in page.get("/maintenance/").content.decode()
    saved = page.post(f"/maintenance/jobs/{broken}/", {"cron": "30 2 * * *", "zone": "UTC", "is_enabled": "1"})
    assert saved.status_code == 302
    assert "Atlantis" not in page.get(f"/maintenance/jobs/{broken}/").content.decode()
