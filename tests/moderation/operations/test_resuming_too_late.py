"""A purge whose undo period has expired deletes nothing more, because it could not be undone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

from chatstore.domain.errors import BadInput
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge, Step
from moderation.operations.purging.controls import available_controls, finish_purge, resume_purge, retry_purge
from tests.moderation.channels import by_victor, confirm, make_channel, old_ids, preview, write
from tests.moderation.stored_sums import store_sums

Action = Callable[..., Purge]

GO_ON: dict[PurgeState, Action] = {
    PurgeState.PAUSED: resume_purge,
    PurgeState.CANCELLED: finish_purge,
    PurgeState.DONE_WITH_FAILURES: retry_purge,
}


def make_purge_in_state(mona: User, state: PurgeState, *, days: int) -> Purge:
    """Create a purge that deleted something some days ago and is not finished."""
    channel, ids = make_channel(), old_ids(40)
    write(channel, ids)
    purge = confirm(mona, preview(mona, by_victor(channel)))
    first = purge.steps.order_by("ordinal").values("ordinal")[:1]
    began = postgres_now() - dt.timedelta(days=days)
    Step.objects.filter(purge=purge, ordinal__in=first).update(quarantined_at=began, state=StepState.COUNTED)
    store_sums()
    Purge.objects.filter(pk=purge.pk).update(state=state)
    purge.refresh_from_db()
    return purge


@pytest.mark.parametrize("state", GO_ON)
def test_resuming_is_refused_and_not_offered(state: PurgeState, mona: User) -> None:
    purge = make_purge_in_state(mona, state, days=31)
    with pytest.raises(BadInput, match="could not be restored"):
        GO_ON[state](purge.pk, moderator=mona)
    purge.refresh_from_db()
    assert purge.state == state
    assert set(available_controls(purge)) <= {"cancel"}


@pytest.mark.parametrize("state", GO_ON)
def test_resuming_is_allowed_before_the_deadline(state: PurgeState, mona: User) -> None:
    purge = make_purge_in_state(mona, state, days=29)
    assert not {"resume", "finish", "retry"}.isdisjoint(available_controls(purge))
    assert GO_ON[state](purge.pk, moderator=mona).state == PurgeState.QUEUED
    # The delete is simulated: workers of other tests must not continue the purge.
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.CANCELLED)
