"""An undo decides once per id what to restore, from the newest complete copy."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moderation.domain.chunks import ROW_COLUMNS, Row
from moderation.domain.restoring import merge_rows, newest_complete_rows, plan_restore

ids = st.sets(st.integers(1, 30))


def row(message_id: int, author: int | None, content: str | None) -> Row:
    return (message_id, author, None, content, *[None] * (len(ROW_COLUMNS) - 4))


@given(ids, ids, ids, ids)
def test_every_requested_id_has_exactly_one_outcome(
    requested: set[int], withdrawn: set[int], deleted_elsewhere: set[int], live: set[int]
) -> None:
    outcome = plan_restore(requested, withdrawn=withdrawn, deleted_elsewhere=deleted_elsewhere, live=live)
    parts = [outcome.wanted, outcome.withdrawn, outcome.still_purged, outcome.already_live]
    assert set().union(*parts) == requested
    assert sum(map(len, parts)) == len(requested)
    assert not outcome.wanted & (withdrawn | deleted_elsewhere | live)


copies = st.lists(
    st.lists(st.tuples(st.integers(1, 8), st.none() | st.just(5), st.none() | st.text(max_size=3)), max_size=6),
    max_size=4,
)


@given(copies, st.sets(st.integers(1, 8)))
def test_each_id_is_restored_once_from_its_newest_complete_copy(
    attempts: list[list[tuple[int, int | None, str | None]]], wanted: set[int]
) -> None:
    kept = [[[row(*copy) for copy in {copy[0]: copy for copy in attempt}.values()]] for attempt in attempts]
    restored = [one for rows in newest_complete_rows(kept, wanted=wanted) for one in rows]
    by_hand: dict[int, Row] = {}
    for message_id in wanted:
        newer: list[Row] = []
        for attempt in kept:
            for one in attempt[0]:
                if one[0] == message_id and message_id not in by_hand:
                    newer.append(one)
                    if one[1] is not None:
                        contents = [copy[3] for copy in newer if copy[3] is not None]
                        by_hand[message_id] = row(message_id, 5, contents[0] if contents else None)
    assert sorted(restored) == sorted(by_hand.values())


def test_a_late_edit_is_applied_to_the_complete_row_and_keeps_its_write_time() -> None:
    edit, whole = row(1, None, "edited"), (*row(1, 5, "first"), 777)
    assert merge_rows(edit, whole) == (*row(1, 5, "edited"), 777)


@pytest.mark.parametrize(("newer", "older", "later"), [((900,), (), 900), ((900,), (777,), 900), ((700,), (777,), 777)])
def test_a_merged_row_has_the_later_of_both_write_times(
    newer: tuple[int, ...], older: tuple[int, ...], later: int
) -> None:
    assert merge_rows((*row(1, None, "edited"), *newer), (*row(1, 5, "hello"), *older)) == (*row(1, 5, "edited"), later)


def test_an_older_attempt_is_not_read_once_every_copy_is_found() -> None:
    taken: list[int] = []

    def attempts() -> Iterator[list[list[Row]]]:
        for number in (1, 2):
            taken.append(number)
            yield [[row(1, 5, "a"), row(2, 5, "b")]]

    assert len(list(newest_complete_rows(attempts(), wanted={1, 2}))) == 1
    assert taken == [1]
