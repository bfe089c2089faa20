"""The combined coverage of repairs equals the coverage computed token by token."""

import datetime as dt
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.token_ranges import (
    MAX_TOKEN,
    MIN_TOKEN,
    Range,
    Repaired,
    covered_since,
    parse_range,
    primary_ranges,
)

BEGIN = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
TOKENS = [MIN_TOKEN + 1, *range(-8, 9), MAX_TOKEN]
"""Ends of ranges, and every token between them that a test uses."""

ends = st.sampled_from(TOKENS)
ranges = st.lists(st.tuples(ends, ends), max_size=4)


def holds(left: int, right: int, token: int) -> bool:
    return left < token <= right if left < right else token > left or token <= right


def oldest_needed(wanted: list[Range], repairs: list[Repaired]) -> dt.datetime | None:
    """Return the oldest of the latest repairs of each token."""
    times = []
    for token in TOKENS:
        if not any(holds(*one, token) for one in wanted):
            continue
        began = [one.began_at for one in repairs if any(holds(*range_, token) for range_ in one.ranges)]
        if not began:
            return None
        times.append(max(began))
    return min(times, default=None)


@given(st.dictionaries(st.sampled_from("abc"), ranges), st.lists(ranges, max_size=6))
def test_the_age_of_a_node_is_that_of_its_longest_unrepaired_token(
    wanted: dict[str, list[Range]], repaired: list[list[Range]]
) -> None:
    repairs = [Repaired(BEGIN - dt.timedelta(days=number), tuple(one)) for number, one in enumerate(repaired)]
    assert covered_since(wanted, repairs) == {node: oldest_needed(own, repairs) for node, own in wanted.items()}


@given(st.lists(st.tuples(ends, st.sampled_from("abc")), min_size=1, unique_by=lambda one: one[0]))
def test_the_primary_ranges_of_all_nodes_are_the_ring_once(owned: list[tuple[int, str]]) -> None:
    found = primary_ranges(sorted(owned))
    for token in TOKENS:
        assert sum(holds(*one, token) for ranges_ in found.values() for one in ranges_) == 1


def test_no_more_of_the_history_is_read_than_is_needed() -> None:
    def history() -> Iterator[Repaired]:
        yield Repaired(BEGIN, ((0, 5),))
        yield Repaired(BEGIN - dt.timedelta(days=1), ((5, 9),))
        raise AssertionError("a third repair was read")

    assert covered_since({"a": [(1, 7)]}, history()) == {"a": BEGIN - dt.timedelta(days=1)}


def test_a_range_is_read_as_cassandra_writes_it() -> None:
    assert parse_range("(-9223372036854775807,12]") == (-9223372036854775807, 12)
    assert Repaired(BEGIN, (parse_range("(5,-5]"),)).has(MAX_TOKEN)
