"""A job runs once per slot, however many schedulers poll; its run is claimed, reports progress, and ends."""

import datetime as dt
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db import connection

from chatstore.domain.errors import BadInput, Forbidden, NotFound, StoreUnavailable
from chatstore.domain.runs import RunState
from chatstore.domain.schedules import Schedule
from chatstore.models import JobRun
from chatstore.models.users import User
from chatstore.operations.jobs.definitions import Job, job_named, set_schedule, timetable_of
from chatstore.operations.jobs.runs import (
    MAX_ATTEMPTS,
    Claim,
    RunLost,
    claim_run,
    create_due_runs,
    due_runs,
    repeat_run,
    request_automatic_run,
    request_run,
    stop_run,
    work_on_run,
)
from tests.chatstore.operations.jobs import BERLIN, register_only

NIGHT = dt.datetime(2026, 10, 25, tzinfo=dt.UTC)
"""The night of a clock change in Berlin."""


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> str:
    """A job that no other test has, each night at half past two in Berlin."""
    job = Job(f"job-{uuid.uuid4().hex[:8]}", do_work, "A test's job", "A test's job", BERLIN, max_attempts=2)
    register_only(monkeypatch, job)
    return job.name


WORKS: list[Callable[[Claim], Mapping[str, Any]]] = []
"""The functions that the job executes; the next one is last."""


def do_work(claim: Claim) -> Mapping[str, Any]:
    return WORKS.pop()(claim)


def run_with(run: JobRun, work: Callable[[Claim], Mapping[str, Any]]) -> JobRun | None:
    WORKS.append(work)
    try:
        return work_on_run(run.pk)
    finally:
        WORKS.clear()


def run_concurrently(function: Callable[[], Any], *, threads: int = 8) -> list[Any]:
    """Call the function in several threads that start together; return the results."""
    found: list[Any] = []
    barrier = threading.Barrier(threads)

    def run() -> None:
        try:
            barrier.wait()
            found.append(function())
        finally:
            connection.close()

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    return found


def test_a_night_with_a_clock_change_has_one_run(job: str) -> None:
    made = [run for minute in range(0, 6 * 60, 7) for run in create_due_runs(NIGHT + dt.timedelta(minutes=minute))]
    assert [run.slot for run in made] == ["2026-10-25T02:30"]
    assert [run.slot for run in JobRun.objects.filter(job=job)] == ["2026-10-25T02:30"]


def test_only_one_of_many_schedulers_creates_the_run(job: str) -> None:
    made = run_concurrently(lambda: len(create_due_runs(NIGHT + dt.timedelta(hours=2))))
    assert sorted(made) == [0] * 7 + [1]
    assert JobRun.objects.filter(job=job).count() == 1


def test_only_one_of_many_workers_executes_the_run(job: str) -> None:
    (run,) = create_due_runs(NIGHT + dt.timedelta(hours=2))
    claims = [claim for claim in run_concurrently(lambda: claim_run(run.pk)) if claim is not None]
    assert len(claims) == 1


def test_a_run_records_its_progress_and_result(job: str) -> None:
    (run,) = create_due_runs(NIGHT + dt.timedelta(hours=2))
    progress = []

    def work(claim: Claim) -> Mapping[str, Any]:
        claim.report_progress(done=3, total=9, what="buckets")
        progress.append(JobRun.objects.get(pk=run.pk).progress)
        return {"buckets": 9}

    ended = run_with(run, work)
    assert ended is not None
    assert (ended.state, ended.result, ended.token) == (RunState.DONE, {"buckets": 9}, None)
    assert progress == [{"done": 3, "total": 9, "what": "buckets"}]
    assert ended.ended_at is not None
    assert run_with(run, work) is None


def test_a_run_without_a_store_fails_with_the_reason(job: str) -> None:
    (run,) = create_due_runs(NIGHT + dt.timedelta(hours=2))

    def work(claim: Claim) -> Mapping[str, Any]:
        raise StoreUnavailable("node 127.0.0.2 is down")

    ended = run_with(run, work)
    assert ended is not None
    assert (ended.state, ended.error) == (RunState.FAILED, "node 127.0.0.2 is down")


def test_a_run_of_a_lost_worker_is_retried_and_finally_given_up(job: str) -> None:
    (run,) = create_due_runs(NIGHT + dt.timedelta(hours=2))
    claims = []
    for _ in range(MAX_ATTEMPTS):
        claim = claim_run(run.pk)
        assert claim is not None
        claims.append(claim)
        assert claim_run(run.pk) is None
        JobRun.objects.filter(pk=run.pk).update(lease_until=NIGHT)
        assert run in due_runs()
    assert claim_run(run.pk) is None
    run.refresh_from_db()
    assert (run.state, run.error) == (RunState.FAILED, "started 3 times without completing")
    with pytest.raises(RunLost):
        claims[-1].end({})


def test_a_manual_run_does_not_move_the_next_scheduled_one(job: str, otto: User) -> None:
    requested = request_run(job, actor=otto)
    assert (requested.slot, requested.requested_by) == (None, otto)
    with pytest.raises(BadInput, match="already queued"):
        request_run(job, actor=otto)
    assert run_with(requested, lambda _: {}) is not None
    (run,) = create_due_runs(NIGHT + dt.timedelta(hours=2))
    assert run.slot == "2026-10-25T02:30"


def test_only_one_of_many_concurrent_clicks_creates_a_run(job: str, otto: User) -> None:
    def click() -> bool:
        try:
            return request_run(job, actor=otto, subject="7:3") is not None
        except BadInput:
            return False

    assert sorted(run_concurrently(click)) == [False] * 7 + [True]
    assert JobRun.objects.filter(job=job).count() == 1
    made = run_concurrently(lambda: request_automatic_run(job, subject="7:4") is not None)
    assert sorted(made) == [False] * 7 + [True]


def test_a_changed_schedule_applies_from_then_on(job: str, otto: User) -> None:
    set_schedule(job, Schedule("0 5 * * *", "UTC"), is_enabled=True, actor=otto)
    times = timetable_of(job_named(job))
    assert (times.schedule, times.is_enabled) == (Schedule("0 5 * * *", "UTC"), True)
    # Slots before the change are not made up for.
    assert create_due_runs(NIGHT + dt.timedelta(hours=6)) == []
    now = dt.datetime.now(dt.UTC)
    (slot,) = Schedule("0 5 * * *", "UTC").next_slots(now, 1)
    assert [run.slot for run in create_due_runs(slot.at)] == [slot.key]
    set_schedule(job, Schedule("0 5 * * *", "UTC"), is_enabled=False, actor=otto)
    assert create_due_runs(slot.at + dt.timedelta(days=1)) == []


def test_an_unknown_job_is_refused(otto: User) -> None:
    with pytest.raises(NotFound):
        request_run("no-such-job", actor=otto)


def test_staff_without_permission_cannot_start_stop_or_change_jobs(job: str, mona: User) -> None:
    with pytest.raises(Forbidden):
        request_run(job, actor=mona)
    with pytest.raises(Forbidden):
        set_schedule(job, Schedule("0 5 * * *", "UTC"), is_enabled=True, actor=mona)
    (run,) = create_due_runs(NIGHT + dt.timedelta(hours=2))
    with pytest.raises(Forbidden):
        stop_run(run.pk, actor=mona)


def test_a_failed_scheduled_run_is_retried_as_often_as_configured(job: str) -> None:
    (run,) = create_due_runs(NIGHT + dt.timedelta(hours=2))

    def fail(claim: Claim) -> Mapping[str, Any]:
        raise StoreUnavailable("node 127.0.0.2 is down")

    run_with(run, fail)
    (again,) = JobRun.objects.filter(retry_of=run)
    assert again.due_at > dt.datetime.now(dt.UTC) + dt.timedelta(minutes=29)
    run_with(again, fail)
    assert not JobRun.objects.filter(retry_of=again).exists()


def test_a_failed_manual_run_is_retried_only_on_request(job: str, otto: User) -> None:
    requested = request_run(job, actor=otto, subject="5:7")

    def fail(claim: Claim) -> Mapping[str, Any]:
        raise StoreUnavailable("node 127.0.0.2 is down")

    run_with(requested, fail)
    assert not JobRun.objects.filter(retry_of=requested).exists()
    again = repeat_run(requested.pk, actor=otto)
    assert (again.subject, again.retry_of) == ("5:7", requested)


def test_a_delayed_attempt_is_brought_forward_by_a_manual_run(job: str, otto: User) -> None:
    failed = JobRun.objects.create(job=job, slot="2026-10-24T02:30", due_at=NIGHT, state=RunState.FAILED)
    later = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=30)
    waits = JobRun.objects.create(job=job, due_at=later, retry_of=failed)
    requested = request_run(job, actor=otto)
    assert (requested.pk, requested.retry_of, requested.requested_by) == (waits.pk, failed, otto)
    assert requested.due_at < later
    with pytest.raises(BadInput, match="already queued"):
        request_run(job, actor=otto)
    assert claim_run(requested.pk) is not None


def test_a_run_is_stopped_between_two_parts_of_its_work(job: str, otto: User) -> None:
    requested = request_run(job, actor=otto)

    def work(claim: Claim) -> Mapping[str, Any]:
        claim.report_progress(done=1, total=3)
        assert stop_run(requested.pk, actor=otto)
        claim.report_progress(done=2, total=3)
        raise AssertionError("it continued")

    ended = run_with(requested, work)
    assert ended is not None
    assert (ended.state, ended.stop_requested_by, ended.progress["done"]) == (RunState.STOPPED, otto, 2)


def test_a_queued_run_is_stopped_at_once(job: str, otto: User) -> None:
    requested = request_run(job, actor=otto)
    assert stop_run(requested.pk, actor=otto)
    requested.refresh_from_db()
    assert requested.state == RunState.STOPPED
    assert claim_run(requested.pk) is None
    assert not stop_run(requested.pk, actor=otto)


def test_a_run_does_not_start_beside_another_run_of_its_job(job: str, otto: User) -> None:
    (run,) = create_due_runs(NIGHT + dt.timedelta(hours=2))
    requested = create_run_beside(run, otto)

    def work(claim: Claim) -> Mapping[str, Any]:
        ended = run_with(requested, lambda _: {})
        assert ended is not None
        assert (ended.state, ended.error) == (RunState.SKIPPED, f"Run {run.pk} of the same job is still running.")
        return {}

    ended = run_with(run, work)
    assert ended is not None
    assert ended.state == RunState.DONE


def create_run_beside(run: JobRun, actor: User) -> JobRun:
    """Create a second due run of the same job, like that of a second night."""
    return JobRun.objects.create(job=run.job, due_at=NIGHT, requested_by=actor)


def test_a_scheduled_run_neither_starts_nor_continues_outside_its_hours(job: str, otto: User) -> None:
    now = dt.datetime.now(dt.UTC)
    ahead, later = ((now + dt.timedelta(hours=hours)).time().replace(microsecond=0) for hours in (2, 3))
    set_schedule(job, Schedule("30 2 * * *", "UTC", ahead, later), is_enabled=True, actor=otto)
    run = JobRun.objects.create(job=job, slot="2026-10-25T02:30", due_at=NIGHT)
    ended = run_with(run, lambda _: {})
    assert ended is not None
    assert ended.state == RunState.SKIPPED
    assert "It may only run between" in ended.error

    set_schedule(job, Schedule("30 2 * * *", "UTC"), is_enabled=True, actor=otto)
    run = JobRun.objects.create(job=job, slot="2026-10-26T02:30", due_at=NIGHT)

    def work(claim: Claim) -> Mapping[str, Any]:
        claim.report_progress(done=1, total=2)
        claim.closes_at = now
        claim.report_progress(done=2, total=2)
        raise AssertionError("it continued")

    ended = run_with(run, work)
    assert ended is not None
    assert ended.state == RunState.FAILED
    assert "had not completed when its hours ended" in ended.error
