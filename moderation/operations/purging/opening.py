"""Opening of steps in parts: a request opens the first ones, so that it is answered at once, and workers the others.

An undo creates its steps, and the end of a cancellation reopens those of the purge; there may be 50,000.
"""

from __future__ import annotations

import uuid

from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.models.steps import AnyStep
from moderation.operations.steps.claiming import (
    RUNNABLE,
    AllChannelsLocked,
    brief_transaction,
    claim_steps,
    lock_purge,
)
from moderation.operations.steps.in_parts import reopen_next_steps
from moderation.operations.steps.open_steps import HAS_STEPS_TO_OPEN
from moderation.operations.undo.requests import create_next_steps


def claim_or_open(purge_id: int, *, token: uuid.UUID) -> list[AnyStep]:
    """Call `claim_steps`; open further steps as long as it finds none. Raises `AllChannelsLocked`."""
    while True:
        try:
            steps = claim_steps(purge_id, token=token)
        except AllChannelsLocked:
            # The channels of the next steps may be free.
            if not open_next_steps(purge_id):
                raise
        else:
            if steps or not open_next_steps(purge_id):
                return steps


def open_next_steps(purge_id: int) -> bool:
    """Open the next steps of a purge that does not have all of them open yet; return whether there were any."""
    if not Purge.objects.filter(HAS_STEPS_TO_OPEN, id=purge_id).exists():
        return False
    with brief_transaction():
        return open_next_steps_of(lock_purge(purge_id))


def open_next_steps_of(purge: Purge) -> bool:
    """Do the same in the caller's transaction, which locks the purge's row."""
    if purge.state == PurgeState.UNDOING:
        return create_next_steps(purge)
    return purge.state in RUNNABLE and purge.reopened_to is not None and reopen_next_steps(purge)
