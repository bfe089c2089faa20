"""Page reads are noticed by jobs of every process, and background jobs throttle meanwhile."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pytest_django import Settings

from chatstore.store import foreground
from chatstore.store.foreground import KEY, is_anybody_reading, note_page_read
from chatstore.store.reading.reader import read_page
from chatstore.store.redis import redis_client
from moderation.store import pace as pace_module
from moderation.store.pace import Pace
from tests.clocks import FakeTime
from tests.waiting import LIMIT_SECONDS


@pytest.fixture(autouse=True)
def _nobody_reads() -> None:
    redis_client().delete(KEY)
    foreground._begin_anew()


def hears(expected: bool, *, within: float = LIMIT_SECONDS) -> bool:
    end = time.monotonic() + within
    while is_anybody_reading() is not expected:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_a_page_is_heard_of_and_soon_forgotten() -> None:
    assert not is_anybody_reading()
    read_page(4_711)
    assert hears(True)
    assert hears(False)


def test_a_page_that_another_process_reads_is_heard_of() -> None:
    code = (
        "import time, django; django.setup(); from chatstore.store.reading.reader import read_page\n"
        "while True: read_page(4_712); time.sleep(0.1)"
    )
    reader = subprocess.Popen([sys.executable, "-c", code])
    try:
        assert hears(True)
    finally:
        reader.kill()
        reader.wait()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    """The clock by which a job works and sleeps."""
    clock = FakeTime()
    monkeypatch.setattr(pace_module, "time", clock)
    return clock


@contextmanager
def somebody_reads() -> Iterator[None]:
    """Read a page repeatedly: on a busy machine a single read would expire before it is checked."""
    ended = threading.Event()

    def read() -> None:
        while not ended.wait(0.05):
            note_page_read()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert hears(True)
        yield
    finally:
        ended.set()
        reader.join()


def test_a_job_rests_while_somebody_reads_and_not_otherwise(settings: Settings, clock: FakeTime) -> None:
    settings.PURGE_REST = 5
    pace = Pace(1_000)
    clock.now += 0.05
    pace.rest()
    assert clock.slept == []
    with somebody_reads():
        clock.now += 0.05
        pace.rest()
    assert clock.slept == [pytest.approx(5 * 0.05)]


def test_what_was_waited_for_is_no_work_to_rest_from(settings: Settings, clock: FakeTime) -> None:
    settings.PURGE_REST = 5
    pace = Pace(1_000)
    clock.now += 0.2
    pace.begin()
    with somebody_reads():
        pace.rest()
    assert clock.slept == [0]
