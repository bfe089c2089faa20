"""The outcome of a purge or an undo for one message follows from the ids that its steps store."""

import pytest

from moderation.domain.outcomes import PurgeOutcome, RestoreOutcome, UndoIds, purge_outcome, restore_outcome
from moderation.domain.states import StepState


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (StepState.PENDING, PurgeOutcome.WAITING),
        (StepState.DELETED, PurgeOutcome.WAITING),
        (StepState.CLOSED, PurgeOutcome.WAITING),
        (StepState.CANCELLED, PurgeOutcome.LEFT),
        (StepState.FAILED, PurgeOutcome.FAILED),
        (StepState.COUNTED, PurgeOutcome.DELETED),
    ],
)
def test_nothing_is_reported_as_deleted_before_it_is_counted(state: StepState, outcome: PurgeOutcome) -> None:
    assert purge_outcome(7, state=state, gone=[], failed=[]) is outcome


def test_failed_and_missing_messages_were_not_deleted() -> None:
    assert purge_outcome(7, state=StepState.COUNTED, gone=[7], failed=[]) is PurgeOutcome.ALREADY_GONE
    assert purge_outcome(7, state=StepState.COUNTED, gone=[8], failed=[7]) is PurgeOutcome.FAILED


def undo(
    *,
    written: tuple[int, ...] = (),
    left_out: tuple[int, ...] = (),
    missing: tuple[int, ...] = (),
    still_purged: int = 0,
    already_live: int = 0,
    failed: int = 0,
) -> UndoIds:
    return UndoIds(written, left_out, missing, still_purged, already_live, failed)


@pytest.mark.parametrize(
    ("sets", "outcome"),
    [
        (undo(written=(7,)), RestoreOutcome.RESTORED),
        (undo(written=(7,), missing=(7,), failed=1), RestoreOutcome.FAILED),
        (undo(written=(7,), missing=(7,)), RestoreOutcome.NO_COPY),
        (undo(left_out=(7,), still_purged=1), RestoreOutcome.STILL_PURGED),
        (undo(left_out=(7,), already_live=1), RestoreOutcome.ALREADY_LIVE),
        (undo(left_out=(7, 8), still_purged=1, already_live=1), RestoreOutcome.LEFT_OUT),
        (undo(written=(8,), left_out=(9,), still_purged=1), None),
    ],
)
def test_the_outcome_of_an_undo_follows_its_recorded_ids(sets: UndoIds, outcome: RestoreOutcome | None) -> None:
    assert restore_outcome(7, sets, withdrawn=False) is outcome


def test_a_withdrawn_message_was_omitted_for_that_reason() -> None:
    assert restore_outcome(7, undo(left_out=(7,), still_purged=2), withdrawn=True) is RestoreOutcome.WITHDRAWN
    assert restore_outcome(7, undo(written=(7,)), withdrawn=True) is RestoreOutcome.WITHDRAWN
    assert restore_outcome(7, undo(written=(8,)), withdrawn=True) is None
