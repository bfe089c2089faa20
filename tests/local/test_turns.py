"""The server lock, taken by threads: locks of two threads conflict like those of two processes."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.turns import Turns

pytestmark = pytest.mark.unit

WAITS_SECONDS = 0.3


def test_tests_run_beside_each_other(tmp_path: Path) -> None:
    one, other = Turns(tmp_path), Turns(tmp_path)
    one.take(alone=False)
    other.take(alone=False)
    one.give_back()
    other.give_back()


def test_a_test_that_runs_alone_waits_for_the_others_and_later_ones_wait_for_it(tmp_path: Path) -> None:
    order: list[str] = []

    def run(name: str, *, alone: bool) -> None:
        turns = Turns(tmp_path)
        turns.take(alone=alone)
        order.append(name)
        time.sleep(WAITS_SECONDS)
        order.append(name)
        turns.give_back()

    first = Turns(tmp_path)
    first.take(alone=False)
    with ThreadPoolExecutor() as threads:
        threads.submit(run, "alone", alone=True)
        time.sleep(WAITS_SECONDS)
        threads.submit(run, "later", alone=False)
        time.sleep(WAITS_SECONDS)
        assert order == []
        first.give_back()
    assert order == ["alone", "alone", "later", "later"]


def test_a_turn_that_is_held_is_kept_until_it_is_given_back(tmp_path: Path) -> None:
    """Between two tests that share an outage no other test may start."""
    holder, other = Turns(tmp_path), Turns(tmp_path)
    began: list[str] = []

    def run_other() -> None:
        other.take(alone=False)
        began.append("other")
        other.give_back()

    holder.take(alone=True)
    with ThreadPoolExecutor() as threads:
        threads.submit(run_other)
        holder.take(alone=True)
        time.sleep(WAITS_SECONDS)
        assert began == []
        holder.give_back()
    assert began == ["other"]
