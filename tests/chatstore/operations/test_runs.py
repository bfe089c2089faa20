"""A job runs once for each of its slots, whoever looks; its run is claimed, told of, and ends."""

import datetime as dt
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from pytest_django import Settings

from chatstore.domain.errors import BadInput, NotFound, StoreUnavailable
from chatstore.domain.runs import RunState
from chatstore.domain.schedules import Schedule
from chatstore.models import JobRun
from chatstore.operations.runs import (
    TRIES,
    Claim,
    RunLost,
    ask_run,
    claim_run,
    due_runs,
    job_named,
    make_due_runs,
    schedule_of,
    set_schedule,
    work_on_run,
)

NIGHT = dt.datetime(2026, 10, 25, tzinfo=dt.UTC)
"""In Berlin the clock is put back in it."""


@pytest.fixture
def job(settings: Settings) -> str:
    """A job that no other test has, each night at half past two in Berlin."""
    name = f"job-{uuid.uuid4().hex[:8]}"
    entry = {"task": "nobody.does_it", "words": "A test's job", "schedule": ("30 2 * * *", "Europe/Berlin")}
    settings.MAINTENANCE_JOBS = {name: entry}
    return name


def at_once(act: Callable[[], Any], *, threads: int = 8) -> list[Any]:
    """The results of the same act in several threads, begun together."""
    found: list[Any] = []
    barrier = threading.Barrier(threads)

    def go() -> None:
        try:
            barrier.wait()
            found.append(act())
        finally:
            connection.close()

    going = [threading.Thread(target=go) for _ in range(threads)]
    for thread in going:
        thread.start()
    for thread in going:
        thread.join()
    return found


def test_a_night_in_which_the_clock_is_put_back_has_one_run(job: str) -> None:
    made = [run for minute in range(0, 6 * 60, 7) for run in make_due_runs(NIGHT + dt.timedelta(minutes=minute))]
    assert [run.slot for run in made] == ["2026-10-25T02:30"]
    assert [run.slot for run in JobRun.objects.filter(job=job)] == ["2026-10-25T02:30"]


def test_of_many_schedulers_one_makes_the_run(job: str) -> None:
    made = at_once(lambda: len(make_due_runs(NIGHT + dt.timedelta(hours=2))))
    assert sorted(made) == [0] * 7 + [1]
    assert JobRun.objects.filter(job=job).count() == 1


def test_of_many_workers_one_does_the_run(job: str) -> None:
    (run,) = make_due_runs(NIGHT + dt.timedelta(hours=2))
    claims = [claim for claim in at_once(lambda: claim_run(run.pk)) if claim is not None]
    assert len(claims) == 1


def test_a_run_tells_how_far_it_is_and_what_it_did(job: str) -> None:
    (run,) = make_due_runs(NIGHT + dt.timedelta(hours=2))
    told = []

    def work(claim: Claim) -> Mapping[str, Any]:
        claim.tell(done=3, total=9, what="buckets")
        told.append(JobRun.objects.get(pk=run.pk).progress)
        return {"buckets": 9}

    ended = work_on_run(run.pk, work)
    assert ended is not None
    assert (ended.state, ended.did, ended.token) == (RunState.DONE, {"buckets": 9}, None)
    assert told == [{"done": 3, "total": 9, "what": "buckets"}]
    assert ended.ended_at is not None
    assert work_on_run(run.pk, work) is None


def test_a_run_that_the_store_cannot_serve_has_failed_with_its_reason(job: str) -> None:
    (run,) = make_due_runs(NIGHT + dt.timedelta(hours=2))

    def work(claim: Claim) -> Mapping[str, Any]:
        raise StoreUnavailable("node 127.0.0.2 is down")

    ended = work_on_run(run.pk, work)
    assert ended is not None
    assert (ended.state, ended.error) == (RunState.FAILED, "node 127.0.0.2 is down")


def test_a_run_whose_worker_has_gone_is_taken_up_and_in_the_end_given_up(job: str) -> None:
    (run,) = make_due_runs(NIGHT + dt.timedelta(hours=2))
    claims = []
    for _ in range(TRIES):
        claim = claim_run(run.pk)
        assert claim is not None
        claims.append(claim)
        assert claim_run(run.pk) is None
        JobRun.objects.filter(pk=run.pk).update(lease_until=NIGHT)
        assert run in due_runs()
    assert claim_run(run.pk) is None
    run.refresh_from_db()
    assert (run.state, run.error) == (RunState.FAILED, "begun 3 times, and never brought to its end")
    with pytest.raises(RunLost):
        claims[-1].end({})


def test_a_run_that_somebody_asks_for_leaves_the_next_one_where_it_was(job: str, otto: User) -> None:
    asked = ask_run(job, actor=otto)
    assert (asked.slot, asked.asked_by) == (None, otto)
    with pytest.raises(BadInput, match="queued already"):
        ask_run(job, actor=otto)
    assert work_on_run(asked.pk, lambda _: {}) is not None
    (run,) = make_due_runs(NIGHT + dt.timedelta(hours=2))
    assert run.slot == "2026-10-25T02:30"


def test_a_schedule_that_was_changed_counts_from_then_on(job: str, otto: User) -> None:
    set_schedule(job, Schedule("0 5 * * *", "UTC"), is_on=True, actor=otto)
    assert schedule_of(job_named(job)) == (Schedule("0 5 * * *", "UTC"), True)
    # What would have been due before the change is not made up for.
    assert make_due_runs(NIGHT + dt.timedelta(hours=6)) == []
    now = dt.datetime.now(dt.UTC)
    (slot,) = Schedule("0 5 * * *", "UTC").next_slots(now, 1)
    assert [run.slot for run in make_due_runs(slot.at)] == [slot.key]
    set_schedule(job, Schedule("0 5 * * *", "UTC"), is_on=False, actor=otto)
    assert make_due_runs(slot.at + dt.timedelta(days=1)) == []


def test_a_job_that_there_is_none_of_is_refused(otto: User) -> None:
    with pytest.raises(NotFound):
        ask_run("no-such-job", actor=otto)
