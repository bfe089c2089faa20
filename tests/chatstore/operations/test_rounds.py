"""A monitoring round runs every check, even after a failed one, and only one worker runs it."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator

import pytest
from django.db import connection
from pytest_django import Settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.operations.findings import monitor_loop
from chatstore.operations.findings.monitor_loop import keep_watch, make_round
from chatstore.store.heartbeats import WATCH, seconds_since
from chatstore.store.redis import redis_client

LOOKED: list[dt.datetime] = []


def look(now: dt.datetime) -> None:
    LOOKED.append(now)


BEGUN, GO_ON = threading.Event(), threading.Event()


def look_for_long(now: dt.datetime) -> None:
    BEGUN.set()
    GO_ON.wait(10)
    look(now)


def look_in_vain(_now: dt.datetime) -> None:
    raise StoreUnavailable("Cassandra does not answer.")


def look_and_break(_now: dt.datetime) -> None:
    raise RuntimeError("a mistake of ours")


@pytest.fixture(autouse=True)
def _begin_anew(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(monitor_loop, "_checks", [look])
    settings.WATCH_SECONDS = 60
    redis_client().delete("seen:watch")
    LOOKED.clear()
    yield
    redis_client().delete("seen:watch")


def test_a_look_that_fails_keeps_no_other_one_from_looking(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(monitor_loop, "_checks", [look_in_vain, look_and_break, look])
    assert make_round()
    assert len(LOOKED) == 1
    assert "look_in_vain could not run: Cassandra does not answer." in caplog.text
    assert "a mistake of ours" in caplog.text


def test_a_second_worker_does_not_look_again_within_the_minute() -> None:
    assert make_round()
    assert not make_round()
    assert len(LOOKED) == 1
    since = seconds_since(WATCH)
    assert since is not None
    assert since < 5


def test_of_workers_that_look_at_the_same_time_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_loop, "_checks", [look_for_long])
    BEGUN.clear()
    GO_ON.clear()
    made: list[bool] = []

    def go() -> None:
        try:
            made.append(make_round())
        finally:
            connection.close()

    first = threading.Thread(target=go)
    first.start()
    assert BEGUN.wait(10)
    assert not make_round()
    GO_ON.set()
    first.join()
    assert made == [True]
    assert len(LOOKED) == 1


def test_a_watch_goes_on_until_it_is_told_to_stop(settings: Settings) -> None:
    settings.WATCH_SECONDS = 0.05
    stop = threading.Event()
    watch = threading.Thread(target=keep_watch, args=(stop,))
    watch.start()
    deadline = threading.Event()
    for _ in range(100):
        if len(LOOKED) >= 3:
            break
        deadline.wait(0.05)
    stop.set()
    watch.join(10)
    assert not watch.is_alive()
    assert len(LOOKED) >= 3
