"""A late repair is reported, then gc_grace is raised, and finally deletes wait."""

import datetime as dt
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from chatstore.domain.buckets import bucket_at
from chatstore.domain.repair_clocks import ClockState, RepairClock
from chatstore.domain.runs import ENDED, RunState, Severity
from chatstore.models import Finding, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import request_run, work_on_run
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.repair_status import gc_grace, repair_clock
from chatstore.operations.repair_status.repair_clock import (
    LATE_REPAIR,
    read_clock,
    report_late_repairs,
    why_deletes_wait,
)
from chatstore.store import tables
from tests.chatstore.channels import delete_old_delete_log, fresh_id, now_ms

GRACE = 172_800


@pytest.fixture(autouse=True)
def _restore_gc_grace(settings: Settings) -> Iterator[None]:
    """Restore the table and the findings, which all tests share."""
    settings.GC_GRACE_RAISE_BY_ITSELF = False
    settings.PURGES_WAIT_FOR_REPAIR = True
    delete_old_delete_log()
    yield
    if tables.read_table("messages").gc_grace_seconds != GRACE:
        tables.set_gc_grace("messages", GRACE)
    Finding.objects.filter(kind=LATE_REPAIR, closed_at=None).delete()
    JobRun.objects.filter(job="raise_gc_grace", requested_by=None).exclude(state__in=ENDED).delete()


def clock_at(share: float) -> RepairClock:
    """Shift the clock of `messages` to the given share of gc_grace."""
    note_deletes(fresh_id(), bucket_at(now_ms()) - 2, 3)
    clock = read_clock("messages")
    assert clock.counts_from is not None
    return read_clock("messages", clock.counts_from + dt.timedelta(seconds=share * clock.gc_grace_seconds))


@pytest.mark.parametrize(
    ("share", "state"), [(0.79, ClockState.OK), (0.81, ClockState.WARNING), (1.01, ClockState.CRITICAL)]
)
def test_the_repair_clock_becomes_warning_and_critical(share: float, state: ClockState) -> None:
    assert clock_at(share).state == state


def test_a_late_repair_is_a_finding_that_closes_by_itself() -> None:
    report_late_repairs([clock_at(0.85)])
    found = Finding.objects.get(kind=LATE_REPAIR, subject="messages", closed_at=None)
    assert found.severity == Severity.WARNING
    assert "hours of gc_grace are left for deletes that no repair covers" in found.summary
    report_late_repairs([clock_at(1.2)])
    found.refresh_from_db()
    assert found.severity == Severity.CRITICAL
    assert "Purges wait until a repair completes" in found.summary
    report_late_repairs([clock_at(0.1)])
    found.refresh_from_db()
    assert found.closed_at is not None


def test_gc_grace_is_raised_automatically_where_enabled(settings: Settings) -> None:
    report_late_repairs([clock_at(0.85)])
    raising = JobRun.objects.filter(job="raise_gc_grace").exclude(state__in=ENDED)
    assert not raising.exists()
    settings.GC_GRACE_RAISE_BY_ITSELF = True
    report_late_repairs([clock_at(0.85)])
    report_late_repairs([clock_at(0.85)])
    run = work_on_run(raising.get().pk)
    assert run is not None
    assert (run.state, run.result) == (RunState.DONE, {"was": {"seconds": 172_800}, "is": {"seconds": 864_000}})
    clock = clock_at(0.5)
    assert (clock.gc_grace_seconds, clock.is_raised) == (864_000, True)
    report_late_repairs([clock_at(0.85)])
    assert not raising.exists()


def test_gc_grace_is_reset_only_after_a_repair(otto: User) -> None:
    raised = work_on_run(request_run("raise_gc_grace", actor=otto).pk)
    assert raised is not None
    assert raised.state == RunState.DONE
    late = clock_at(0.5)
    assert late.state == ClockState.OK
    assert not gc_grace.restore_after_repair(late)
    assert gc_grace.restore_after_repair(read_clock("messages"))
    assert tables.read_table("messages").gc_grace_seconds == GRACE


def test_a_manually_raised_gc_grace_is_kept(otto: User) -> None:
    restored = JobRun.objects.create(
        job="restore_gc_grace", state=RunState.DONE, due_at=postgres_now(), ended_at=postgres_now()
    )
    tables.set_gc_grace("messages", 864_000)
    assert not gc_grace.restore_after_repair(read_clock("messages"))
    restored.delete()


def test_deletes_wait_only_after_gc_grace_has_passed() -> None:
    clock = clock_at(0.5)
    assert why_deletes_wait(clock.now) == ""
    assert "a purge now could restore deleted messages" in why_deletes_wait(clock_at(1.1).now)


def test_nothing_waits_when_a_repair_covers_every_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_clock, "first_uncovered_delete", lambda began_at: None)
    far = postgres_now() + dt.timedelta(days=400)
    assert why_deletes_wait(far) == ""
    assert read_clock("messages", far).state == ClockState.OK
