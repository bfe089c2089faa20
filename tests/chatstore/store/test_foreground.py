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
from chatstore.store.foreground import KEY, are_pages_being_read, note_page_read
from chatstore.store.reading.reader import read_page
from chatstore.store.redis import redis_client
from moderation.store import pace as pace_module
from moderation.store.pace import Pace
from tests.fake_time import FakeTime
from tests.waiting import LIMIT_SECONDS


@pytest.fixture(autouse=True)
def _no_reader() -> None:
    redis_client().delete(KEY)
    foreground._last.checked_at = 0.0


def wait_for_reading(expected: bool, *, within: float = LIMIT_SECONDS) -> bool:
    end = time.monotonic() + within
    while are_pages_being_read() is not expected:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_a_page_read_is_noticed_and_soon_expires() -> None:
    assert not are_pages_being_read()
    read_page(4_711)
    assert wait_for_reading(True)
    assert wait_for_reading(False)


def test_a_page_read_by_another_process_is_noticed() -> None:
    code = (
        "import time, django; django.setup(); from chatstore.store.reading.reader import read_page\n"
        "while True: read_page(4_712); time.sleep(0.1)"
    )
    reader = subprocess.Popen([sys.executable, "-c", code])
    try:
        assert wait_for_reading(True)
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
def simulate_reading() -> Iterator[None]:
    """Read a page repeatedly: on a busy machine a single read would expire before it is checked."""
    ended = threading.Event()

    def read() -> None:
        while not ended.wait(0.05):
            note_page_read()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert wait_for_reading(True)
        yield
    finally:
        ended.set()
        reader.join()


def test_a_job_throttles_only_while_users_read_pages(settings: Settings, clock: FakeTime) -> None:
    settings.PURGE_THROTTLE_FACTOR = 5
    pace = Pace(1_000)
    clock.now += 0.05
    pace.throttle()
    assert clock.slept == []
    with simulate_reading():
        clock.now += 0.05
        pace.throttle()
    assert clock.slept == [pytest.approx(5 * 0.05)]


def test_waiting_time_does_not_count_as_work_for_throttling(settings: Settings, clock: FakeTime) -> None:
    settings.PURGE_THROTTLE_FACTOR = 5
    pace = Pace(1_000)
    clock.now += 0.2
    pace.begin()
    with simulate_reading():
        pace.throttle()
    assert clock.slept == [0]
