"""A run of the monitor makes every check, even after a failed one, and only one worker runs it."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator

import pytest
from django.db import connection
from pytest_django import Settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.operations.findings import monitor_loop
from chatstore.operations.findings.monitor_loop import run_checks, run_monitor
from chatstore.store.heartbeats import MONITOR, seconds_since_heartbeat
from chatstore.store.redis import redis_client

CHECKED_AT: list[dt.datetime] = []


def check(now: dt.datetime) -> None:
    CHECKED_AT.append(now)


CHECK_STARTED, CHECK_MAY_END = threading.Event(), threading.Event()


def check_slowly(now: dt.datetime) -> None:
    CHECK_STARTED.set()
    CHECK_MAY_END.wait(10)
    check(now)


def check_without_store(_now: dt.datetime) -> None:
    raise StoreUnavailable("Cassandra does not answer.")


def check_with_bug(_now: dt.datetime) -> None:
    raise RuntimeError("a mistake of ours")


@pytest.fixture(autouse=True)
def _reset_after_fork(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(monitor_loop, "_checks", [check])
    settings.MONITOR_INTERVAL_SECONDS = 60
    redis_client().delete("seen:monitor")
    CHECKED_AT.clear()
    yield
    redis_client().delete("seen:monitor")


def test_a_failing_check_does_not_prevent_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(monitor_loop, "_checks", [check_without_store, check_with_bug, check])
    assert run_checks()
    assert len(CHECKED_AT) == 1
    assert "check_without_store could not run: Cassandra does not answer." in caplog.text
    assert "a mistake of ours" in caplog.text


def test_a_second_worker_does_not_check_again_within_the_minute() -> None:
    assert run_checks()
    assert not run_checks()
    assert len(CHECKED_AT) == 1
    since = seconds_since_heartbeat(MONITOR)
    assert since is not None
    assert since < 5


def test_only_one_of_concurrent_workers_runs_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_loop, "_checks", [check_slowly])
    CHECK_STARTED.clear()
    CHECK_MAY_END.clear()
    made: list[bool] = []

    def run() -> None:
        try:
            made.append(run_checks())
        finally:
            connection.close()

    first = threading.Thread(target=run)
    first.start()
    assert CHECK_STARTED.wait(10)
    assert not run_checks()
    CHECK_MAY_END.set()
    first.join()
    assert made == [True]
    assert len(CHECKED_AT) == 1


def test_the_monitor_runs_until_it_is_stopped(settings: Settings) -> None:
    settings.MONITOR_INTERVAL_SECONDS = 0.05
    stop = threading.Event()
    monitor = threading.Thread(target=run_monitor, args=(stop,))
    monitor.start()
    deadline = threading.Event()
    for _ in range(100):
        if len(CHECKED_AT) >= 3:
            break
        deadline.wait(0.05)
    stop.set()
    monitor.join(10)
    assert not monitor.is_alive()
    assert len(CHECKED_AT) >= 3
