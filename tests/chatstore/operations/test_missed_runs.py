"""A run that did not start within 15 minutes of its slot is reported until one runs."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth.models import User

from chatstore.domain.runs import RunState
from chatstore.domain.schedules import Schedule
from chatstore.models import Finding, JobRun
from chatstore.operations.jobs.definitions import set_schedule
from chatstore.operations.jobs.runs import claim_run, make_due_runs
from chatstore.operations.monitoring.checks import MISSED_RUN, look_at_runs
from tests.chatstore.operations.jobs import ended_run, only_job

DUE = dt.datetime(2026, 11, 20, 1, 30, tzinfo=dt.UTC)
"""02:30 in Berlin."""

NIGHT_BEFORE = DUE - dt.timedelta(days=1)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a job whose run of the night before succeeded."""
    name = only_job(monkeypatch)
    ended_run(name, at=NIGHT_BEFORE, slot="2026-11-19T02:30")
    return name


def look(*, after: dt.timedelta) -> None:
    look_at_runs(DUE + after)


def open_ones(job: str) -> list[Finding]:
    return list(Finding.objects.filter(kind=MISSED_RUN, subject=job, closed_at=None))


HALF_AN_HOUR = dt.timedelta(minutes=30)


def test_a_run_is_given_fifteen_minutes(job: str) -> None:
    make_due_runs(DUE)
    look(after=dt.timedelta(minutes=14))
    assert open_ones(job) == []
    look(after=dt.timedelta(minutes=16))
    (found,) = open_ones(job)
    assert "did not run at 02:30 on 20 November (Europe/Berlin): no worker has claimed it." in found.words


def test_it_is_told_once_and_over_when_a_worker_takes_the_run(job: str) -> None:
    (run,) = make_due_runs(DUE)
    look(after=HALF_AN_HOUR)
    look(after=HALF_AN_HOUR * 2)
    (found,) = open_ones(job)
    assert claim_run(run.pk) is not None
    look(after=HALF_AN_HOUR * 3)
    assert open_ones(job) == []
    found.refresh_from_db()
    assert found.closed_at is not None


def test_a_slot_for_which_nobody_made_a_run_is_missed_too(job: str) -> None:
    look(after=HALF_AN_HOUR)
    (found,) = open_ones(job)
    assert found.words.endswith("no scheduler polled for due runs.")


def test_a_run_that_lost_its_worker_and_found_no_other_did_not_happen(job: str) -> None:
    (run,) = make_due_runs(DUE)
    claim_run(run.pk)
    JobRun.objects.filter(pk=run.pk).update(lease_until=DUE)
    look(after=HALF_AN_HOUR)
    (found,) = open_ones(job)
    assert "its worker died" in found.words


def test_a_run_that_came_too_late_for_its_hours_did_not_happen(job: str) -> None:
    reason = "It may only run between 02:00 and 05:00 (Europe/Berlin)."
    ended_run(job, at=DUE + dt.timedelta(hours=6), slot="2026-11-20T02:30", state=RunState.SKIPPED, error=reason)
    look(after=dt.timedelta(hours=7))
    (found,) = open_ones(job)
    assert "It may only run between" in found.words


def test_a_failed_run_has_happened(job: str) -> None:
    ended_run(job, at=DUE, slot="2026-11-20T02:30", state=RunState.FAILED, error="a node is down")
    look(after=HALF_AN_HOUR)
    assert open_ones(job) == []


def test_what_was_missed_stays_missed_for_days_and_is_over_when_somebody_runs_it(job: str) -> None:
    look(after=HALF_AN_HOUR)
    (found,) = open_ones(job)
    # The slot of the next night has no run either.
    for hours in (20, 23, 25, 47, 80):
        look(after=dt.timedelta(hours=hours))
        assert [one.pk for one in open_ones(job)] == [found.pk], hours
    ended_run(job, at=DUE + dt.timedelta(hours=81))
    look(after=dt.timedelta(hours=82))
    assert open_ones(job) == []


def test_a_job_that_never_ran_has_missed_nothing_before_it_was_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    name = only_job(monkeypatch)
    look(after=HALF_AN_HOUR)
    assert open_ones(name) == []
    # An existing run that no worker takes is missed, though.
    make_due_runs(DUE)
    look(after=HALF_AN_HOUR)
    assert len(open_ones(name)) == 1


def test_a_job_that_is_switched_off_misses_nothing(job: str, otto: User) -> None:
    look(after=HALF_AN_HOUR)
    assert len(open_ones(job)) == 1
    set_schedule(job, Schedule("30 2 * * *", "Europe/Berlin"), is_on=False, actor=otto)
    look(after=HALF_AN_HOUR)
    assert open_ones(job) == []
