"""Every state of a step determines what may be done with the step when its worker is gone."""

import pytest

from moderation.domain.states import STEP_STATES, UNDO_STEP_STATES, StateGroups, StepState, UndoStepState


@pytest.mark.parametrize(("states", "groups"), [(StepState, STEP_STATES), (UndoStepState, UNDO_STEP_STATES)])
def test_each_state_of_a_step_is_in_exactly_one_group(
    states: type[StepState] | type[UndoStepState], groups: StateGroups
) -> None:
    grouped = [*groups.before_stamped, *groups.partly_applied, *groups.final]
    assert sorted(grouped) == sorted(states)
    assert groups.pending == "pending"
