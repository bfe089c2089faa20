"""While anybody reads pages, jobs hear of it, from any process; a job that can wait rests meanwhile."""

import subprocess
import sys
import time

import pytest
from pytest_django import Settings

from chatstore.store import foreground
from chatstore.store.foreground import KEY, SAID_FOR_MS, is_anybody_reading, note_page_read
from chatstore.store.reader import read_page
from chatstore.store.redis import redis_client
from moderation.store.pace import Pace


@pytest.fixture(autouse=True)
def _nobody_reads() -> None:
    redis_client().delete(KEY)
    foreground._begin_anew()


def hears(expected: bool, *, within: float = 2.0) -> bool:
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
    assert hears(False, within=SAID_FOR_MS / 1_000 + 1)


def test_a_page_that_another_process_reads_is_heard_of() -> None:
    code = (
        "import time, django; django.setup(); from chatstore.store.reader import read_page\n"
        "while True: read_page(4_712); time.sleep(0.1)"
    )
    reader = subprocess.Popen([sys.executable, "-c", code])
    try:
        assert hears(True, within=30)
    finally:
        reader.kill()
        reader.wait()


@pytest.mark.alone
def test_a_job_rests_while_somebody_reads_and_not_otherwise(settings: Settings) -> None:
    settings.PURGE_REST = 5

    def seconds_of_rest() -> float:
        pace = Pace(1_000)
        time.sleep(0.05)
        began = time.monotonic()
        pace.rest()
        return time.monotonic() - began

    assert seconds_of_rest() < 0.05
    note_page_read()
    assert hears(True)
    assert seconds_of_rest() >= 5 * 0.05


@pytest.mark.alone
def test_what_was_waited_for_is_no_work_to_rest_from(settings: Settings) -> None:
    settings.PURGE_REST = 5
    pace = Pace(1_000)
    note_page_read()
    assert hears(True)
    time.sleep(0.2)
    pace.begin()
    began = time.monotonic()
    pace.rest()
    assert time.monotonic() - began < 0.2
