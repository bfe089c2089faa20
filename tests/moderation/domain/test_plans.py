"""The planner, compared with brute force and checked for the invariants of any bucket."""

from itertools import combinations, pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.buckets import bucket_ids
from moderation.domain.planner import (
    MAX_ROW_DELETES,
    BucketPlan,
    BucketSplit,
    DeleteStrategy,
    IdRange,
    cost_of_ranges,
    find_runs,
    ids_inside,
    join_runs,
    plan_bucket,
    plan_ranges,
)

WHOLE = bucket_ids(0)
ids = st.integers(1, 800)


def disjoint(*, matched: int, survivors: int) -> st.SearchStrategy[tuple[list[int], list[int]]]:
    return st.tuples(st.sets(ids, max_size=matched), st.sets(ids, max_size=survivors)).map(
        lambda pair: (sorted(pair[0] - pair[1]), sorted(pair[1]))
    )


buckets = st.fixed_dictionaries(
    {
        "ids": disjoint(matched=300, survivors=60),
        "recent_from": st.integers(0, 850),
        "existing_tombstones": st.integers(0, 120),
        "sealed": st.booleans(),
        "budget": st.integers(2, 150),
        "later_from": st.integers(120, 400),
    }
)


def plan(case: dict[str, Any]) -> BucketSplit:
    matched, survivors = case["ids"]
    return plan_bucket(
        matched,
        survivors,
        recent_from=case["recent_from"],
        existing_tombstones=case["existing_tombstones"],
        sealed=case["sealed"],
        budget=case["budget"],
        later_from=case["later_from"],
    )


def expected_ranges(matched: list[int], survivors: list[int]) -> list[IdRange]:
    """Return the same ranges, found by walking over all ids in order."""
    runs: list[list[int]] = []
    open_run = False
    for number in sorted([*matched, *survivors]):
        if number in survivors:
            open_run = False
        elif open_run:
            runs[-1][1] = number
        else:
            runs.append([number, number])
            open_run = True
    return [(first, last) for first, last in runs]


def fewest_survivors(runs: list[IdRange], survivors: list[int], *, max_ranges: int) -> int:
    """Return the cheapest way to join the ranges, found by trying every combination."""
    best = None
    for kept in range(min(max_ranges, len(runs))):
        for cuts in combinations(range(1, len(runs)), kept):
            edges = [0, *cuts, len(runs)]
            ranges = [(runs[a][0], runs[b - 1][1]) for a, b in pairwise(edges)]
            inside = len(ids_inside(survivors, ranges))
            best = inside if best is None else min(best, inside)
    return best or 0


@given(disjoint(matched=300, survivors=60))
def test_ranges_cover_the_matched_ids_and_no_survivor(pair: tuple[list[int], list[int]]) -> None:
    matched, survivors = pair
    assert list(find_runs(matched, survivors)) == expected_ranges(matched, survivors)


@given(disjoint(matched=14, survivors=12), st.integers(1, 6))
def test_joining_rewrites_no_more_survivors_than_the_cheapest_plan_of_as_many_ranges(
    pair: tuple[list[int], list[int]], max_ranges: int
) -> None:
    matched, survivors = pair
    runs = expected_ranges(matched, survivors)
    ranges = join_runs(runs, survivors, max_ranges=max_ranges)
    assert len(ranges) <= max_ranges or not runs
    assert ids_inside(matched, ranges) == matched
    assert len(ids_inside(survivors, ranges)) == fewest_survivors(runs, survivors, max_ranges=max_ranges)


@given(buckets)
def test_every_matched_id_is_deleted_by_exactly_one_strategy(case: dict[str, Any]) -> None:
    split = plan(case)
    assert sorted([*split.rows, *split.ranges, *split.later]) == case["ids"][0]
    assert sum(part.count for part in split.plan.parts) == len(case["ids"][0])


@given(disjoint(matched=200, survivors=200), st.integers(0, 700), st.integers(2, 500))
def test_a_sealed_bucket_is_never_over_its_budget_after_a_purge(
    pair: tuple[list[int], list[int]], existing_tombstones: int, budget: int
) -> None:
    matched, survivors = pair
    if not matched:
        return
    found = plan_ranges(matched, survivors, existing_tombstones=existing_tombstones, sealed=True, budget=budget)
    swallowed = existing_tombstones if list(found.ranges) == [WHOLE] else 0
    assert found.tombstones + existing_tombstones - swallowed <= budget
    assert ids_inside(matched, found.ranges) == matched
    assert list(found.rewritten) == ids_inside(survivors, found.ranges)


@given(buckets)
def test_a_partition_is_dropped_only_when_sealed_and_without_survivors(case: dict[str, Any]) -> None:
    split = plan(case)
    if any(part.strategy is DeleteStrategy.DROP for part in split.plan.parts):
        assert case["sealed"]
        assert not case["ids"][1]
        assert not split.rows
        assert not split.later


@given(buckets)
def test_few_messages_are_deleted_by_row_at_once_at_any_age(case: dict[str, Any]) -> None:
    matched, _ = case["ids"]
    if len(matched) <= min(MAX_ROW_DELETES, case["budget"] - case["existing_tombstones"]):
        assert list(plan(case).rows) == matched


@given(buckets)
def test_ids_of_the_last_hour_are_never_deleted_by_range_at_once(case: dict[str, Any]) -> None:
    assert all(message_id < case["recent_from"] for message_id in plan(case).ranges)


@given(buckets)
def test_row_deletes_of_the_last_hour_stop_at_the_tombstone_budget(case: dict[str, Any]) -> None:
    split = plan(case)
    assert len(split.rows) + case["existing_tombstones"] <= max(case["later_from"], case["budget"])
    if split.later:
        assert len(split.rows) + case["existing_tombstones"] >= case["later_from"]
        assert not split.rows or split.later[-1] < split.rows[0]


@given(buckets)
def test_a_plan_can_be_stored_and_loaded(case: dict[str, Any]) -> None:
    stored = plan(case).plan
    assert BucketPlan.from_json(stored.as_json()) == stored


def test_keeping_every_second_message_rewrites_only_as_much_as_the_budget_requires() -> None:
    found = plan_ranges(
        list(range(1, 2001, 2)), list(range(2, 2001, 2)), existing_tombstones=0, sealed=True, budget=500
    )
    assert found.strategy is DeleteStrategy.REWRITE
    assert (len(found.ranges), len(found.rewritten)) == (250, 750)
    assert cost_of_ranges(found.ranges) <= 500
