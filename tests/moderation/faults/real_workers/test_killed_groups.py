"""A worker that is killed in the middle of a group, at every transition, before and after its commit."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from chatstore.models.users import User
from moderation.domain.states import StepState, UndoStepState
from moderation.models import Step, UndoStep
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import run_to_end
from tests.moderation.faults.real_workers.breakpoints import (
    breakpoints_installed,
    clear_breakpoint,
    find_blocked,
    set_breakpoint,
    terminate_backend,
)
from tests.moderation.faults.real_workers.paused_worker_process import paused_worker_started
from tests.moderation.scattered import Scattered, make_scattered
from tests.waiting import wait_until

TRANSITIONS = (
    StepState.QUARANTINING,
    StepState.QUARANTINED,
    StepState.STAMPED,
    StepState.REWRITTEN,
    StepState.DELETED,
    StepState.VERIFIED,
    StepState.CLOSED,
    StepState.COUNTED,
)
UNDO_TRANSITIONS = (
    UndoStepState.PLANNING,
    UndoStepState.STAMPED,
    UndoStepState.RESTORED,
    UndoStepState.VERIFIED,
    UndoStepState.CLOSED,
    UndoStepState.COUNTED,
)


def kill_at_every(places: Sequence[StepState | UndoStepState], cases: list[Scattered]) -> None:
    """Run one case per place, before and after the commit; kill the process once all of them wait."""
    with breakpoints_installed():
        with paused_worker_started() as worker:
            for scattered, (state, stored) in zip(cases, itertools.product(places, (False, True)), strict=True):
                set_breakpoint(scattered.purge.pk, state, stored=stored)
            worker.begin([scattered.purge.pk for scattered in cases])
            wait_until(lambda: all(find_blocked(scattered.purge) for scattered in cases))
            worker.process.kill()
            worker.process.wait()
        for scattered in cases:
            blocked = find_blocked(scattered.purge)
            if blocked is not None:
                terminate_backend(blocked)
            clear_breakpoint(scattered.purge)
    for model in (Step, UndoStep):
        model.objects.filter(purge__in=[scattered.purge for scattered in cases], lease_until__isnull=False).update(
            lease_until="2020-01-01T00:00:00Z"
        )


@pytest.mark.slow
@pytest.mark.alone
def test_a_group_killed_at_any_transition_is_purged_exactly(mona: User) -> None:
    cases = [make_scattered(mona) for _ in range(2 * len(TRANSITIONS))]
    kill_at_every(TRANSITIONS, cases)
    for scattered in cases:
        run_to_end(scattered.purge)
        scattered.assert_purged()
        scattered.undo(mona)


@pytest.mark.slow
@pytest.mark.alone
def test_a_group_of_an_undo_killed_at_any_transition_is_restored_exactly(mona: User) -> None:
    cases = [make_scattered(mona) for _ in range(2 * len(UNDO_TRANSITIONS))]
    for scattered in cases:
        run_to_end(scattered.purge)
        request_undo(scattered.purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    kill_at_every(UNDO_TRANSITIONS, cases)
    for scattered in cases:
        run_to_end(scattered.purge)
        scattered.assert_undone()
