"""A round of repairs continues night after night, several nodes at a time, until every node is repaired."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from chatstore.domain.repair_rounds import (
    RepairRound,
    count_repaired,
    next_node,
    oldest_first,
    predict_end,
    replicas_by_node,
)
from chatstore.domain.schedules import Schedule
from chatstore.domain.token_ranges import MAX_TOKEN, MIN_TOKEN

BEGIN = dt.datetime(2026, 11, 1, 2, 30, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)
NODES, COPIES = 177, 3
NIGHTLY = Schedule("30 2 * * *", "UTC", dt.time(1), dt.time(6))


def ring_of(vnodes: int) -> list[tuple[int, str, list[str]]]:
    """Return a ring of 177 nodes with random tokens; three nodes in a row have the replicas of a range."""
    generator = random.Random(vnodes)
    names = [f"10.0.{number // 100}.{number % 100}" for number in range(NODES)]
    owned = sorted((generator.randrange(MIN_TOKEN + 1, MAX_TOKEN), name) for name in names for _ in range(vnodes))
    ring = []
    for number, (token, name) in enumerate(owned):
        following = dict.fromkeys(owner for _, owner in owned[number:] + owned[:number])
        ring.append((token, name, list(following)[:COPIES]))
    return ring


def simulate_round(replicas: dict[str, frozenset[str]], at_once: int) -> tuple[list[str], list[int]]:
    """Repair every node once; return the nodes in the order of their starts, and how many ran at each of them."""
    generator = random.Random(1)
    waiting, running, order, counts = sorted(replicas), dict[str, float](), list[str](), list[int]()
    now = 0.0
    while waiting or running:
        while len(running) < at_once and (node := next_node(waiting, running, replicas)) is not None:
            assert all(replicas[node].isdisjoint(replicas[other]) for other in running)
            waiting.remove(node)
            running[node] = now + generator.uniform(5, 15)
            order.append(node)
            counts.append(len(running))
        now = running.pop(min(running, key=running.__getitem__))
    return order, counts


def test_the_oldest_repair_comes_first_and_nodes_without_one_before_it() -> None:
    assert oldest_first({"a": BEGIN, "b": BEGIN - MINUTE, "c": None, "d": BEGIN - 2 * MINUTE}) == ["c", "d", "b", "a"]


def test_nights_that_end_early_reach_every_node_before_any_is_repaired_twice() -> None:
    repaired_at: dict[str, dt.datetime | None] = {f"node {number:03}": None for number in range(NODES)}
    order: list[str] = []
    now = BEGIN
    generator = random.Random(2)
    for night in range(10):
        now = BEGIN + dt.timedelta(days=night)
        down = set(generator.sample(sorted(repaired_at), 2)) if night == 1 else set()
        waiting = [node for node in oldest_first(repaired_at) if node not in down]
        # A night may end after any node: at the end of its hours, or with its worker.
        for node in waiting[: generator.randrange(20, 60)]:
            now += 5 * MINUTE
            repaired_at[node] = now
            order.append(node)
    assert len(set(order[: NODES + 2])) == NODES
    assert max(order.count(node) for node in repaired_at) - min(order.count(node) for node in repaired_at) <= 1


def test_two_nodes_run_together_only_if_no_node_has_replicas_of_both() -> None:
    replicas = replicas_by_node([(1, "a", "ab"), (2, "b", "bc"), (3, "c", "cd"), (4, "d", "de"), (5, "e", "ea")])
    assert replicas["d"] == {"d", "e"}
    assert next_node("abcde", (), replicas) == "a"
    assert next_node("bcde", "a", replicas) == "c"
    assert next_node("bde", "ac", replicas) is None


def test_a_node_whose_replica_is_down_is_left_for_later() -> None:
    replicas = replicas_by_node([(1, "a", "ab"), (2, "b", "bc"), (3, "c", "cd"), (4, "d", "da")])
    assert next_node("abcd", (), replicas, down="b") == "c"
    assert next_node("ab", (), replicas, down="b") is None


@pytest.mark.parametrize(("vnodes", "together"), [(4, 3.5), (8, 2.2), (16, 1.1)])
def test_fewer_vnodes_let_more_nodes_run_together(vnodes: int, together: float) -> None:
    replicas = replicas_by_node(ring_of(vnodes))
    order, counts = simulate_round(replicas, at_once=4)
    assert sorted(order) == sorted(replicas)
    assert max(counts) <= 4
    assert sum(counts) / len(counts) > together


def test_nodes_are_repaired_one_at_a_time_by_default_in_their_order() -> None:
    order, counts = simulate_round(replicas_by_node(ring_of(4)), at_once=1)
    assert order == sorted(order)
    assert set(counts) == {1}


def test_a_round_is_complete_once_every_node_was_repaired_since_it_began() -> None:
    repaired_at = {"a": BEGIN, "b": BEGIN + MINUTE, "c": BEGIN - MINUTE, "d": None}
    assert count_repaired(repaired_at, BEGIN) == 2
    assert not RepairRound(BEGIN, nodes=4, repaired=2).is_complete
    assert RepairRound(BEGIN, nodes=4, repaired=4).is_complete


@pytest.mark.parametrize(
    ("hours", "end"),
    [
        (1, dt.datetime(2026, 11, 2, 3, 30, tzinfo=dt.UTC)),
        (3.5, dt.datetime(2026, 11, 2, 6, 0, tzinfo=dt.UTC)),
        (4, dt.datetime(2026, 11, 3, 3, 0, tzinfo=dt.UTC)),
        (30, dt.datetime(2026, 11, 10, 4, 30, tzinfo=dt.UTC)),
    ],
)
def test_the_end_of_a_round_counts_only_the_hours_of_the_nights(hours: float, end: dt.datetime) -> None:
    assert predict_end(hours * 3_600, BEGIN.replace(hour=12), NIGHTLY) == end


def test_an_active_run_continues_until_its_hours_end() -> None:
    closes_at = BEGIN.replace(hour=6)
    hours = dt.timedelta(hours=1)
    now = BEGIN.replace(hour=5)
    assert predict_end(1_800, now, NIGHTLY, is_running=True, closes_at=closes_at) == now + hours / 2
    following = dt.datetime(2026, 11, 2, 3, 30, tzinfo=dt.UTC)
    assert predict_end(7_200, now, NIGHTLY, is_running=True, closes_at=closes_at) == following
    assert predict_end(7_200, now, None, is_running=True) == now + 2 * hours
    assert predict_end(7_200, now, Schedule("30 2 * * *", "UTC"), is_running=True) == now + 2 * hours


def test_without_a_schedule_or_within_hours_that_never_come_the_end_is_unknown() -> None:
    assert predict_end(3_600, BEGIN, None) is None
    assert predict_end(3_600, BEGIN, Schedule("30 12 * * *", "UTC", dt.time(1), dt.time(6))) is None
    assert predict_end(10 * 365 * 86_400, BEGIN, NIGHTLY) is None


def test_several_slots_of_one_night_are_not_counted_twice() -> None:
    hourly = Schedule("30 * * * *", "UTC", dt.time(1), dt.time(6))
    ends = [predict_end(hours * 3_600, BEGIN.replace(hour=12), hourly) for hours in (4, 5)]
    assert ends == [dt.datetime(2026, 11, 2, 5, 30, tzinfo=dt.UTC), dt.datetime(2026, 11, 3, 2, 0, tzinfo=dt.UTC)]
