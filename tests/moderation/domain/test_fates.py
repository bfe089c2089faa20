"""The outcome of a purge or an undo for one message follows from the ids that its steps store."""

import pytest

from moderation.domain.outcomes import Comeback, Fate, UndoSets, comeback_in, fate_in
from moderation.domain.states import StepState


@pytest.mark.parametrize(
    ("state", "fate"),
    [
        (StepState.PENDING, Fate.WAITING),
        (StepState.DELETED, Fate.WAITING),
        (StepState.CLOSED, Fate.WAITING),
        (StepState.CANCELLED, Fate.LEFT),
        (StepState.FAILED, Fate.FAILED),
        (StepState.COUNTED, Fate.DELETED),
    ],
)
def test_nothing_is_said_to_be_removed_before_it_is_counted(state: StepState, fate: Fate) -> None:
    assert fate_in(7, state=state, gone=[], failed=[]) is fate


def test_what_failed_or_was_gone_already_was_not_deleted() -> None:
    assert fate_in(7, state=StepState.COUNTED, gone=[7], failed=[]) is Fate.ALREADY_GONE
    assert fate_in(7, state=StepState.COUNTED, gone=[8], failed=[7]) is Fate.FAILED


def undo(
    *,
    written: tuple[int, ...] = (),
    left_out: tuple[int, ...] = (),
    missing: tuple[int, ...] = (),
    still_purged: int = 0,
    already_live: int = 0,
    failed: int = 0,
) -> UndoSets:
    return UndoSets(written, left_out, missing, still_purged, already_live, failed)


@pytest.mark.parametrize(
    ("sets", "comeback"),
    [
        (undo(written=(7,)), Comeback.RESTORED),
        (undo(written=(7,), missing=(7,), failed=1), Comeback.FAILED),
        (undo(written=(7,), missing=(7,)), Comeback.NOWHERE_KEPT),
        (undo(left_out=(7,), still_purged=1), Comeback.STILL_PURGED),
        (undo(left_out=(7,), already_live=1), Comeback.ALREADY_LIVE),
        (undo(left_out=(7, 8), still_purged=1, already_live=1), Comeback.LEFT_OUT),
        (undo(written=(8,), left_out=(9,), still_purged=1), None),
    ],
)
def test_an_undo_is_told_by_what_it_kept(sets: UndoSets, comeback: Comeback | None) -> None:
    assert comeback_in(7, sets, withdrawn=False) is comeback


def test_what_its_author_withdrew_was_left_out_for_that() -> None:
    assert comeback_in(7, undo(left_out=(7,), still_purged=2), withdrawn=True) is Comeback.WITHDRAWN
    assert comeback_in(7, undo(written=(7,)), withdrawn=True) is Comeback.WITHDRAWN
    assert comeback_in(7, undo(written=(8,)), withdrawn=True) is None
