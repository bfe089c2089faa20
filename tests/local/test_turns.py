"""Turns are taken by threads here; a lock of theirs is as much another's as one of another process."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.turns import take_turn

WAITS_SECONDS = 0.3


def test_tests_run_beside_each_other(tmp_path: Path) -> None:
    with take_turn(tmp_path, alone=False), take_turn(tmp_path, alone=False):
        pass


def test_who_wants_to_be_alone_waits_for_the_others_and_whoever_comes_later_waits_for_him(tmp_path: Path) -> None:
    order: list[str] = []

    def run(name: str, *, alone: bool) -> None:
        with take_turn(tmp_path, alone=alone):
            order.append(name)
            time.sleep(WAITS_SECONDS)
            order.append(name)

    with ThreadPoolExecutor() as threads, take_turn(tmp_path, alone=False):
        threads.submit(run, "alone", alone=True)
        time.sleep(WAITS_SECONDS)
        threads.submit(run, "later", alone=False)
        time.sleep(WAITS_SECONDS)
        assert order == []
    assert order == ["alone", "alone", "later", "later"]
