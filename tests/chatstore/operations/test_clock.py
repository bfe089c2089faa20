"""Postgres's clock is the reference; a process with a wrong clock does not write."""

import os
import socket
import time
from collections.abc import Callable

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.errors import WriteRefused
from chatstore.operations.coordination.clock import check_clock, measure_skew, postgres_now_us, wall_clock_us


def test_postgres_now_advances_within_a_transaction() -> None:
    with transaction.atomic():
        first = postgres_now_us()
        time.sleep(0.01)
        assert postgres_now_us() - first >= 10_000


def test_the_clocks_of_this_machine_agree() -> None:
    assert abs(postgres_now_us() - wall_clock_us()) < 1_000_000
    check_clock()


def off_by(seconds: float) -> Callable[[], int]:
    return lambda: wall_clock_us() + int(seconds * 1e6)


@pytest.mark.parametrize(("seconds", "direction"), [(6, "ahead of"), (-6, "behind")])
def test_a_clock_skew_of_six_seconds_is_refused_and_reported(seconds: int, direction: str) -> None:
    check_clock()
    with pytest.raises(WriteRefused) as refused:
        check_clock(wall_clock=off_by(seconds))
    assert f"process {os.getpid()} on {socket.gethostname()}" in str(refused.value)
    assert direction in str(refused.value)
    # Once corrected, the clock is accepted at once.
    check_clock()


@pytest.mark.parametrize("seconds", [4, -4])
def test_a_clock_skew_of_four_seconds_is_tolerated(seconds: int) -> None:
    check_clock(wall_clock=off_by(seconds))
    check_clock()


@given(
    before=st.integers(0, 100),
    asked=st.integers(0, 100),
    took=st.integers(0, 100),
    ahead=st.integers(-500, 500),
)
def test_only_skew_beyond_the_round_trip_counts(before: int, asked: int, took: int, ahead: int) -> None:
    # Postgres answered at `before + asked` by its own clock; ours is `ahead` of it.
    skew = measure_skew(before + ahead, before + asked, before + asked + took + ahead)
    assert abs(skew) <= abs(ahead)
    assert skew * ahead >= 0
    if took == asked == 0:
        assert skew == ahead
