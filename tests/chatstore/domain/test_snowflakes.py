"""Ids contain their time, also before 2015, and a generator never repeats one."""

import datetime as dt
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.errors import BadInput, WriteRefused
from chatstore.domain.snowflakes import (
    EPOCH_MS,
    MAX_CLOCK_BACKSTEP_MS,
    MAX_ID,
    MIN_ID,
    SnowflakeMaker,
    first_id_at,
    make_snowflake,
    ms_of,
    parse_snowflake,
    time_of,
    unix_ms,
)

IDS = st.integers(MIN_ID, MAX_ID)
# The full range of ids, about 1945 to 2084.
TIMES = st.integers(EPOCH_MS - 2**41, EPOCH_MS + 2**41 - 1)


@given(ms=TIMES, worker=st.integers(0, 1023), sequence=st.integers(0, 4095))
def test_an_id_contains_its_millisecond(ms: int, worker: int, sequence: int) -> None:
    made = make_snowflake(ms, worker=worker, sequence=sequence)
    assert ms_of(made) == ms
    assert made == (ms - EPOCH_MS) * 4_194_304 + worker * 4096 + sequence
    assert MIN_ID <= made <= MAX_ID


@given(one=TIMES, other=TIMES)
def test_ids_sort_as_their_times(one: int, other: int) -> None:
    assert (first_id_at(one) < first_id_at(other)) == (one < other)


@given(ms=TIMES)
def test_the_first_id_of_a_millisecond_is_the_lowest(ms: int) -> None:
    assert ms_of(first_id_at(ms)) == ms
    assert ms_of(first_id_at(ms) - 1) == ms - 1


@given(ms=TIMES)
def test_time_and_id_agree_to_the_millisecond(ms: int) -> None:
    posted_at = time_of(first_id_at(ms))
    assert posted_at.tzinfo == dt.UTC
    assert unix_ms(posted_at) == ms


def test_discords_own_example_is_read_as_discord_reads_it() -> None:
    assert time_of(175928847299117063) == dt.datetime(2016, 4, 30, 11, 18, 25, 796000, tzinfo=dt.UTC)


def test_a_time_before_2015_gives_a_negative_id() -> None:
    posted_at = dt.datetime(2011, 5, 1, tzinfo=dt.UTC)
    assert first_id_at(unix_ms(posted_at)) < 0
    assert time_of(first_id_at(unix_ms(posted_at))) == posted_at


@given(value=IDS)
def test_an_id_is_read_from_a_number_and_from_text(value: int) -> None:
    assert parse_snowflake(value) == parse_snowflake(str(value)) == parse_snowflake(f" {value} ") == value


@pytest.mark.parametrize(
    "wrong",
    ["", " ", "abc", "1.5", "--1", "1-", "٣", "1" * 25, None, True, 1.0, [], 2**63, str(-(2**63) - 1)],
)
def test_an_invalid_id_is_refused(wrong: object) -> None:
    with pytest.raises(BadInput, match="is not an ID"):
        parse_snowflake(wrong)


@pytest.mark.parametrize(("worker", "sequence"), [(1024, 0), (-1, 0), (0, 4096), (0, -1)])
def test_numbers_out_of_range_are_refused(worker: int, sequence: int) -> None:
    with pytest.raises(ValueError, match="is outside"):
        make_snowflake(EPOCH_MS, worker=worker, sequence=sequence)


def ticking(*steps: int) -> Callable[[], int]:
    """Return a clock that advances by each step in turn and then stops."""
    times = [EPOCH_MS]
    for step in steps:
        times.append(times[-1] + step)
    remaining = iter(times)
    return lambda: next(remaining, times[-1])


@given(steps=st.lists(st.integers(-3, 3), max_size=50))
def test_a_jittering_clock_never_gives_duplicate_or_unordered_ids(steps: list[int]) -> None:
    maker = SnowflakeMaker(5, clock=ticking(*steps))
    made = [maker.make() for _ in range(len(steps) + 1)]
    assert made == sorted(set(made))
    assert all(one >> 12 & 1023 == 5 for one in made)


def test_more_ids_than_a_millisecond_holds_borrow_from_the_next() -> None:
    maker = SnowflakeMaker(0, clock=ticking())
    made = [maker.make() for _ in range(3 * 4096)]
    assert made == sorted(set(made))
    assert ms_of(made[-1]) == EPOCH_MS + 2


def test_a_clock_that_went_far_back_is_refused_until_it_catches_up() -> None:
    maker = SnowflakeMaker(0, clock=ticking(-MAX_CLOCK_BACKSTEP_MS - 1, MAX_CLOCK_BACKSTEP_MS + 2))
    first = maker.make()
    with pytest.raises(WriteRefused, match="went back by 5,001 ms"):
        maker.make()
    assert maker.make() > first
