"""A run that did not start within 15 minutes of its slot is reported until one runs."""

from __future__ import annotations

import datetime as dt

import pytest

from chatstore.domain.runs import RunState
from chatstore.domain.schedules import Schedule
from chatstore.models import Finding, JobRun
from chatstore.models.users import User
from chatstore.operations.jobs.definitions import set_schedule
from chatstore.operations.jobs.runs import claim_run, create_due_runs
from chatstore.operations.monitoring.checks import MISSED_RUN, check_runs
from tests.chatstore.operations.jobs import configure_only_job, make_ended_run

DUE = dt.datetime(2026, 11, 20, 1, 30, tzinfo=dt.UTC)
"""02:30 in Berlin."""

NIGHT_BEFORE = DUE - dt.timedelta(days=1)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a job whose run of the night before succeeded."""
    name = configure_only_job(monkeypatch)
    make_ended_run(name, at=NIGHT_BEFORE, slot="2026-11-19T02:30")
    return name


def check(*, after: dt.timedelta) -> None:
    check_runs(DUE + after)


def list_open(job: str) -> list[Finding]:
    return list(Finding.objects.filter(kind=MISSED_RUN, subject=job, closed_at=None))


HALF_AN_HOUR = dt.timedelta(minutes=30)


def test_a_run_is_given_fifteen_minutes(job: str) -> None:
    create_due_runs(DUE)
    check(after=dt.timedelta(minutes=14))
    assert list_open(job) == []
    check(after=dt.timedelta(minutes=16))
    (found,) = list_open(job)
    assert "did not run at 02:30 on 20 November (Europe/Berlin). No worker has claimed it." in found.summary


def test_a_missed_run_is_reported_once_and_closed_when_a_worker_takes_it(job: str) -> None:
    (run,) = create_due_runs(DUE)
    check(after=HALF_AN_HOUR)
    check(after=HALF_AN_HOUR * 2)
    (found,) = list_open(job)
    assert claim_run(run.pk) is not None
    check(after=HALF_AN_HOUR * 3)
    assert list_open(job) == []
    found.refresh_from_db()
    assert found.closed_at is not None


def test_a_slot_without_a_run_is_missed_too(job: str) -> None:
    check(after=HALF_AN_HOUR)
    (found,) = list_open(job)
    assert found.summary.endswith("No scheduler polled for due runs.")


def test_a_run_that_lost_its_worker_is_missed(job: str) -> None:
    (run,) = create_due_runs(DUE)
    claim_run(run.pk)
    JobRun.objects.filter(pk=run.pk).update(lease_until=DUE)
    check(after=HALF_AN_HOUR)
    (found,) = list_open(job)
    assert "Its worker died" in found.summary


def test_a_run_outside_its_hours_is_missed(job: str) -> None:
    reason = "It may only run between 02:00 and 05:00 (Europe/Berlin)."
    make_ended_run(job, at=DUE + dt.timedelta(hours=6), slot="2026-11-20T02:30", state=RunState.SKIPPED, error=reason)
    check(after=dt.timedelta(hours=7))
    (found,) = list_open(job)
    assert "It may only run between" in found.summary


def test_a_failed_run_is_not_missed(job: str) -> None:
    make_ended_run(job, at=DUE, slot="2026-11-20T02:30", state=RunState.FAILED, error="a node is down")
    check(after=HALF_AN_HOUR)
    assert list_open(job) == []


def test_a_missed_run_stays_reported_until_it_is_run(job: str) -> None:
    check(after=HALF_AN_HOUR)
    (found,) = list_open(job)
    # The slot of the next night has no run either.
    for hours in (20, 23, 25, 47, 80):
        check(after=dt.timedelta(hours=hours))
        assert [one.pk for one in list_open(job)] == [found.pk], hours
    make_ended_run(job, at=DUE + dt.timedelta(hours=81))
    check(after=dt.timedelta(hours=82))
    assert list_open(job) == []


def test_a_new_job_has_missed_nothing_before_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    name = configure_only_job(monkeypatch)
    check(after=HALF_AN_HOUR)
    assert list_open(name) == []
    # An existing run that no worker takes is missed, though.
    create_due_runs(DUE)
    check(after=HALF_AN_HOUR)
    assert len(list_open(name)) == 1


def test_a_disabled_job_misses_nothing(job: str, otto: User) -> None:
    check(after=HALF_AN_HOUR)
    assert len(list_open(job)) == 1
    set_schedule(job, Schedule("30 2 * * *", "Europe/Berlin"), is_enabled=False, actor=otto)
    check(after=HALF_AN_HOUR)
    assert list_open(job) == []
