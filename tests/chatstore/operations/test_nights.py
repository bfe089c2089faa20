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
AROUND = dt.timedelta(days=4)
CHANGES = [
    ("Europe/Berlin", dt.date(2026, 3, 29)),
    ("Europe/Berlin", dt.date(2026, 10, 25)),
    ("America/New_York", dt.date(2026, 3, 8)),
    ("America/New_York", dt.date(2026, 11, 1)),
]


@pytest.mark.parametrize(("zone", "change"), CHANGES)
@pytest.mark.parametrize("wall", ["30 1", "30 2", "0 3"])
def test_each_night_has_one_run(zone: str, change: dt.date, wall: str, monkeypatch: pytest.MonkeyPatch) -> None:
    minute, hour = map(int, wall.split())
    job = configure_only_job(monkeypatch, schedule=Schedule(f"{wall} * * *", zone))
    midnight = dt.datetime.combine(change, dt.time(), tzinfo=dt.UTC)
    now, end = midnight - AROUND, midnight + AROUND
    while now < end:
        create_due_runs(now)
        now += POLLS
    slots = [run.slot for run in JobRun.objects.filter(job=job) if run.slot is not None]
    nights = Counter(slot[:10] for slot in slots)
    days = sorted(dt.date.fromisoformat(night) for night in nights)
    assert set(nights.values()) == {1}
    assert days == [days[0] + dt.timedelta(days=number) for number in range(len(days))]
    assert {slot[11:] for slot in slots} == {f"{hour:02}:{minute:02}"}
    assert len(days) >= 7
    assert change in days


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
