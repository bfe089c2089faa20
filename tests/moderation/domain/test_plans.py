"""The planner, compared with brute force and checked for the invariants of any bucket."""

from itertools import combinations, pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.buckets import bucket_ids
from moderation.domain.planner import (
    ROWS_AT_MOST,
    BucketPlan,
    BucketSplit,
    Span,
    Way,
    cost_of_spans,
    find_runs,
    ids_inside,
    join_runs,
    plan_bucket,
    plan_spans,
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
        "standing": st.integers(0, 120),
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
        standing_tombstones=case["standing"],
        sealed=case["sealed"],
        budget=case["budget"],
        later_from=case["later_from"],
    )


def runs_by_hand(matched: list[int], survivors: list[int]) -> list[Span]:
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


def fewest_survivors(runs: list[Span], survivors: list[int], *, at_most: int) -> int:
    """Return the cheapest way to join the ranges, found by trying every combination."""
    best = None
    for kept in range(min(at_most, len(runs))):
        for cuts in combinations(range(1, len(runs)), kept):
            edges = [0, *cuts, len(runs)]
            spans = [(runs[a][0], runs[b - 1][1]) for a, b in pairwise(edges)]
            inside = len(ids_inside(survivors, spans))
            best = inside if best is None else min(best, inside)
    return best or 0


@given(disjoint(matched=300, survivors=60))
def test_runs_cover_the_matched_ids_and_no_survivor(pair: tuple[list[int], list[int]]) -> None:
    matched, survivors = pair
    assert list(find_runs(matched, survivors)) == runs_by_hand(matched, survivors)


@given(disjoint(matched=14, survivors=12), st.integers(1, 6))
def test_joining_writes_no_more_survivors_than_the_cheapest_plan_of_that_many_spans(
    pair: tuple[list[int], list[int]], at_most: int
) -> None:
    matched, survivors = pair
    runs = runs_by_hand(matched, survivors)
    spans = join_runs(runs, survivors, at_most=at_most)
    assert len(spans) <= at_most or not runs
    assert ids_inside(matched, spans) == matched
    assert len(ids_inside(survivors, spans)) == fewest_survivors(runs, survivors, at_most=at_most)


@given(buckets)
def test_every_matched_id_goes_exactly_one_way(case: dict[str, Any]) -> None:
    split = plan(case)
    assert sorted([*split.rows, *split.spans, *split.later]) == case["ids"][0]
    assert sum(part.count for part in split.plan.parts) == len(case["ids"][0])


@given(disjoint(matched=200, survivors=200), st.integers(0, 700), st.integers(2, 500))
def test_a_sealed_bucket_is_never_over_its_budget_after_a_purge(
    pair: tuple[list[int], list[int]], standing: int, budget: int
) -> None:
    matched, survivors = pair
    if not matched:
        return
    found = plan_spans(matched, survivors, standing_tombstones=standing, sealed=True, budget=budget)
    swallowed = standing if list(found.spans) == [WHOLE] else 0
    assert found.tombstones + standing - swallowed <= budget
    assert ids_inside(matched, found.spans) == matched
    assert list(found.rewritten) == ids_inside(survivors, found.spans)


@given(buckets)
def test_a_partition_is_dropped_only_when_sealed_and_nothing_stays(case: dict[str, Any]) -> None:
    split = plan(case)
    if any(part.way is Way.DROP for part in split.plan.parts):
        assert case["sealed"]
        assert not case["ids"][1]
        assert not split.rows
        assert not split.later


@given(buckets)
def test_few_messages_go_by_row_at_once_whatever_their_age(case: dict[str, Any]) -> None:
    matched, _ = case["ids"]
    if len(matched) <= min(ROWS_AT_MOST, case["budget"] - case["standing"]):
        assert list(plan(case).rows) == matched


@given(buckets)
def test_ids_of_the_last_hour_never_go_by_a_span_at_once(case: dict[str, Any]) -> None:
    assert all(message_id < case["recent_from"] for message_id in plan(case).spans)


@given(buckets)
def test_rows_of_the_last_hour_stop_where_a_read_would_suffer(case: dict[str, Any]) -> None:
    split = plan(case)
    assert len(split.rows) + case["standing"] <= max(case["later_from"], case["budget"])
    if split.later:
        assert len(split.rows) + case["standing"] >= case["later_from"]
        assert not split.rows or split.later[-1] < split.rows[0]


@given(buckets)
def test_a_plan_survives_being_stored(case: dict[str, Any]) -> None:
    stored = plan(case).plan
    assert BucketPlan.from_json(stored.as_json()) == stored


def test_every_second_message_kept_means_writing_only_what_the_budget_cannot_spare() -> None:
    found = plan_spans(list(range(1, 2001, 2)), list(range(2, 2001, 2)), standing_tombstones=0, sealed=True, budget=500)
    assert found.way is Way.REWRITE
    assert (len(found.spans), len(found.rewritten)) == (250, 750)
    assert cost_of_spans(found.spans) <= 500
