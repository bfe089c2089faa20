"""The planner against a plain reckoning of what must hold for any bucket."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moderation.domain.planner import (
    ROWS_AT_MOST,
    BucketPlan,
    BucketSplit,
    Way,
    cost_of_spans,
    find_runs,
    plan_bucket,
    plan_spans,
)

ids = st.integers(-400, 400)
disjoint = st.tuples(st.sets(ids, max_size=300), st.sets(ids, max_size=60)).map(
    lambda pair: (sorted(pair[0] - pair[1]), sorted(pair[1]))
)
buckets = st.fixed_dictionaries(
    {
        "ids": disjoint,
        "recent_from": st.integers(-450, 450),
        "standing": st.integers(0, 120),
        "sealed": st.booleans(),
        "budget": st.integers(0, 150),
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
    )


def runs_by_hand(matched: list[int], survivors: list[int]) -> list[tuple[int, int]]:
    """The same runs, found by walking over everything that is there in order."""
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


@given(disjoint)
def test_runs_cover_the_matched_ids_and_no_survivor(pair: tuple[list[int], list[int]]) -> None:
    matched, survivors = pair
    assert list(find_runs(matched, survivors)) == runs_by_hand(matched, survivors)


@given(buckets)
def test_every_matched_id_goes_exactly_one_way(case: dict[str, Any]) -> None:
    split = plan(case)
    assert sorted([*split.rows, *split.spans, *split.later, *split.refused]) == case["ids"][0]
    assert sum(part.count for part in split.plan.parts) == len(case["ids"][0])
    assert split.plan.refused == len(split.refused)


@given(buckets)
def test_a_bucket_is_never_planned_over_its_budget(case: dict[str, Any]) -> None:
    split = plan(case)
    room = max(0, case["budget"] - case["standing"])
    spans, later = (
        cost_of_spans(runs_by_hand(list(part), case["ids"][1])) if part else 0
        for part in (split.spans, split.later)
    )
    dropped = any(part.way is Way.DROP for part in split.plan.parts)
    assert len(split.rows) + (1 if dropped else spans) + later <= room
    assert split.plan.tombstones <= room


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
        split = plan(case)
        assert list(split.rows) == matched


@given(buckets)
def test_ids_of_the_last_hour_never_go_by_a_span_at_once(case: dict[str, Any]) -> None:
    assert all(message_id < case["recent_from"] for message_id in plan(case).spans)


@given(buckets)
def test_what_is_refused_would_have_broken_the_budget(case: dict[str, Any]) -> None:
    split = plan(case)
    room = max(0, case["budget"] - case["standing"])
    if split.refused:
        assert len(case["ids"][0]) > min(ROWS_AT_MOST, room)
        assert cost_of_spans(runs_by_hand(list(split.refused), case["ids"][1])) + len(split.rows) > room // 2


@given(buckets)
def test_a_plan_survives_being_stored(case: dict[str, Any]) -> None:
    stored = plan(case).plan
    assert BucketPlan.from_json(stored.as_json()) == stored


def test_a_raid_goes_half_at_once_and_half_when_its_hour_is_over() -> None:
    split = plan(
        {"ids": (list(range(400)), []), "recent_from": 0, "standing": 0, "sealed": False, "budget": 150}
    )
    assert (len(split.rows), len(split.later), len(split.refused)) == (75, 325, 0)
    assert list(split.rows) == list(range(325, 400))


def test_a_step_that_would_break_the_budget_is_refused_with_its_number() -> None:
    way, spans, cost = plan_spans([1, 3, 5], [2, 4], standing_tombstones=498, sealed=True, budget=500)
    assert (way, len(spans), cost) == (Way.REFUSED, 3, 3)
