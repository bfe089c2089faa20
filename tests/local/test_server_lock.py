"""The server lock, taken by threads: locks of two threads conflict like those of two processes."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.server_lock import ServerLock

pytestmark = pytest.mark.unit

WAITS_SECONDS = 0.3


def test_tests_run_beside_each_other(tmp_path: Path) -> None:
    one, other = ServerLock(tmp_path), ServerLock(tmp_path)
    assert not one.acquire(exclusive=False)
    assert not other.acquire(exclusive=False)
    one.release()
    other.release()


def test_an_exclusive_test_waits_for_the_others_and_later_ones_wait_for_it(tmp_path: Path) -> None:
    order: list[str] = []

    def run(name: str, *, exclusive: bool) -> None:
        lock = ServerLock(tmp_path)
        lock.acquire(exclusive=exclusive)
        order.append(name)
        time.sleep(WAITS_SECONDS)
        order.append(name)
        lock.release()

    first = ServerLock(tmp_path)
    first.acquire(exclusive=False)
    with ThreadPoolExecutor() as threads:
        threads.submit(run, "alone", exclusive=True)
        time.sleep(WAITS_SECONDS)
        threads.submit(run, "later", exclusive=False)
        time.sleep(WAITS_SECONDS)
        assert order == []
        first.release()
    assert order == ["alone", "alone", "later", "later"]


def test_an_acquired_lock_is_kept_until_it_is_released(tmp_path: Path) -> None:
    """No other test may start between two tests that share an outage."""
    owner, other = ServerLock(tmp_path), ServerLock(tmp_path)
    began: list[str] = []

    def run_other() -> None:
        other.acquire(exclusive=False)
        began.append("other")
        other.release()

    owner.acquire(exclusive=True)
    with ThreadPoolExecutor() as threads:
        threads.submit(run_other)
        owner.acquire(exclusive=True)
        time.sleep(WAITS_SECONDS)
        assert began == []
        owner.release()
    assert began == ["other"]
