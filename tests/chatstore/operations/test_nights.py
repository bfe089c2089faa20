"""Exactly one run per night in two time zones, across both daylight saving changes and with manual runs in between."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import pytest

from chatstore.domain.schedules import Schedule
from chatstore.models import JobRun
from chatstore.models.users import User
from chatstore.operations.jobs.runs import claim_run, create_due_runs, request_run, work_on_run
from tests.chatstore.operations.jobs import configure_only_job

POLLS = dt.timedelta(minutes=45)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("wall", ["30 1", "30 2", "0 3"])
@pytest.mark.parametrize("begin", [dt.datetime(2026, 3, 5), dt.datetime(2026, 10, 22)])  # noqa: DTZ001 - made aware below
def test_each_night_has_one_run(zone: str, wall: str, begin: dt.datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    minute, hour = map(int, wall.split())
    job = configure_only_job(monkeypatch, schedule=Schedule(f"{wall} * * *", zone))
    now = begin.replace(tzinfo=dt.UTC)
    end = now + dt.timedelta(days=26 if begin.month == 3 else 12)
    while now < end:
        create_due_runs(now)
        now += POLLS
    slots = [run.slot for run in JobRun.objects.filter(job=job) if run.slot is not None]
    nights = Counter(slot[:10] for slot in slots)
    days = sorted(dt.date.fromisoformat(night) for night in nights)
    assert set(nights.values()) == {1}
    assert days == [days[0] + dt.timedelta(days=number) for number in range(len(days))]
    assert {slot[11:] for slot in slots} == {f"{hour:02}:{minute:02}"}
    changes = {"Europe/Berlin": ("2026-03-29", "2026-10-25"), "America/New_York": ("2026-03-08", "2026-11-01")}
    assert changes[zone][0 if begin.month == 3 else 1] in nights


def test_a_manual_run_keeps_the_next_one_and_a_second_claim_loses(monkeypatch: pytest.MonkeyPatch, otto: User) -> None:
    job = configure_only_job(monkeypatch)
    requested = request_run(job, actor=otto)
    assert claim_run(requested.pk) is not None
    assert claim_run(requested.pk) is None
    JobRun.objects.filter(pk=requested.pk).update(lease_until=None)
    assert work_on_run(requested.pk) is not None
    (tonight,) = create_due_runs(dt.datetime(2026, 10, 25, 0, 30, tzinfo=dt.UTC))
    assert tonight.slot == "2026-10-25T02:30"
    assert create_due_runs(dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC)) == []
