"""The clocks of a cluster of 177 nodes with 16 vnodes each take work in proportion to its ranges, not to their square.

The work is counted as comparisons of tokens.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from itertools import pairwise

from chatstore.domain.token_ranges import (
    MAX_TOKEN,
    MIN_TOKEN,
    Range,
    Repaired,
    covered_since,
    covered_since_by_table,
    primary_ranges,
)

NODES, VNODES, DAYS = 177, 16, 10
BEGIN = dt.datetime(2026, 11, 1, 2, 30, tzinfo=dt.UTC)
COMPARISONS_PER_RANGE = 100
"""About five sorts and searches of a few thousand tokens. Comparing all ranges with each other takes thousands."""


class Token(int):
    """A token that counts how often it is compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Token.compared += 1
        return super().__lt__(other)

    def __gt__(self, other: int) -> bool:
        Token.compared += 1
        return super().__gt__(other)

    def __le__(self, other: int) -> bool:
        Token.compared += 1
        return super().__le__(other)

    def __ge__(self, other: int) -> bool:
        Token.compared += 1
        return super().__ge__(other)


def ranges_by_node() -> dict[str, list[Range]]:
    generator = random.Random(177)
    names = [f"10.0.{number // 100}.{number % 100}" for number in range(NODES)]
    tokens = ((Token(generator.randrange(MIN_TOKEN + 1, MAX_TOKEN)), name) for name in names for _ in range(VNODES))
    return primary_ranges(sorted(tokens))


def one_round(wanted: dict[str, list[Range]]) -> list[Repaired]:
    """Return the repairs of a round, the latest first; each took ten minutes."""
    began = (BEGIN - dt.timedelta(minutes=10 * number) for number in range(len(wanted)))
    return [Repaired(next(began), tuple(ranges)) for ranges in wanted.values()]


def in_segments(repairs: list[Repaired], pieces: int) -> Iterator[Repaired]:
    """Yield each range in pieces, each a repair of its own, as tools do that repair in segments."""
    for repaired in repairs:
        for left, right in repaired.ranges:
            ends = [Token(left + (right - left) * number // pieces) for number in range(pieces + 1)]
            if left < right:
                yield from (Repaired(repaired.began_at, (piece,)) for piece in pairwise(ends))
            else:
                yield Repaired(repaired.began_at, ((left, right),))


def test_each_node_has_the_time_of_its_own_repair() -> None:
    wanted = ranges_by_node()
    repairs = one_round(wanted)
    Token.compared = 0
    found = covered_since(wanted, repairs)
    assert Token.compared < COMPARISONS_PER_RANGE * NODES * VNODES
    assert list(found.values()) == [repaired.began_at for repaired in repairs]


def test_a_repair_in_thousands_of_segments_has_the_same_clocks() -> None:
    wanted = ranges_by_node()
    segments = list(in_segments(one_round(wanted), 4))
    assert len(segments) > 11_000
    Token.compared = 0
    found = covered_since(wanted, segments)
    assert Token.compared < COMPARISONS_PER_RANGE * len(segments)
    assert found == covered_since(wanted, one_round(wanted))


def test_a_node_that_was_never_repaired_makes_many_rounds_cost_no_more_than_their_ranges() -> None:
    wanted = ranges_by_node()
    repairs = one_round(wanted)[:-1]
    rounds = [
        Repaired(repaired.began_at - dt.timedelta(days=day), repaired.ranges)
        for day in range(30)
        for repaired in repairs
    ]
    Token.compared = 0
    found = covered_since(wanted, rounds)
    assert Token.compared < COMPARISONS_PER_RANGE * NODES * VNODES * DAYS
    assert [node for node, began_at in found.items() if began_at is None] == list(wanted)[-1:]


def test_tables_that_the_same_commands_repaired_are_computed_once() -> None:
    wanted = ranges_by_node()
    small = one_round(wanted)
    later = [Repaired(repaired.began_at + dt.timedelta(days=1), repaired.ranges) for repaired in small]
    Token.compared = 0
    alone = covered_since(wanted, small)
    once, Token.compared = Token.compared, 0
    found = covered_since_by_table(wanted, {"pins": iter(small), "withdrawn": iter(small), "quarantine": iter(small)})
    assert found == {"pins": alone, "withdrawn": alone, "quarantine": alone}
    assert Token.compared == once
    # One of them was also repaired alone, later.
    found = covered_since_by_table(wanted, {"pins": small, "withdrawn": later[:1] + small, "quarantine": small})
    assert found["pins"] == found["quarantine"] == alone
    assert found["withdrawn"] == alone | {next(iter(wanted)): later[0].began_at}


def test_a_history_that_begins_like_another_one_is_read_to_its_own_end() -> None:
    wanted = {"a": [(0, 5)], "b": [(5, 9)]}
    first, second = Repaired(BEGIN, ((0, 5),)), Repaired(BEGIN - dt.timedelta(days=1), ((5, 9),))
    found = covered_since_by_table(wanted, {"pins": [first], "withdrawn": [first, second], "quarantine": [first]})
    assert found == {
        "pins": {"a": BEGIN, "b": None},
        "withdrawn": {"a": BEGIN, "b": second.began_at},
        "quarantine": {"a": BEGIN, "b": None},
    }
