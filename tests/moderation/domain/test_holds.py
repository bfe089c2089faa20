"""Held messages are excluded from the deletes, for holds of any user."""

from moderation.domain.holds import HeldRows, HoldCoverage, without

BY_VICTOR = HoldCoverage(hold_ids=frozenset({1}), authors=frozenset({71}))
ONE_MESSAGE = HoldCoverage(hold_ids=frozenset({2}), messages=frozenset({5}))
ALL = HoldCoverage(hold_ids=frozenset({3}), everything=True)


def test_an_author_s_messages_are_held_and_no_others() -> None:
    assert BY_VICTOR.covers(5, 71)
    assert not BY_VICTOR.covers(5, 72)
    assert not BY_VICTOR.covers(5, None)


def test_one_message_is_held_whatever_its_author() -> None:
    assert ONE_MESSAGE.covers(5, None)
    assert not ONE_MESSAGE.covers(6, 71)


def test_a_hold_on_everything_covers_everything() -> None:
    assert ALL.covers(5, None)


def test_rows_that_are_held_are_taken_out_and_remembered() -> None:
    held_rows = HeldRows(BY_VICTOR)
    assert held_rows.without_held([(3, 71), (2, 72)]) == [(2, 72)]
    assert held_rows.without_held([(1, 71)]) == []
    assert sorted(held_rows.ids) == [1, 3]


def test_without_holds_rows_pass_as_they_are() -> None:
    rows = [(3, 71)]
    assert HeldRows().without_held(rows) is rows


def test_the_remaining_rows_stay_in_order() -> None:
    assert without([1, 2, 3, 4], [3, 1, 9]) == [2, 4]
