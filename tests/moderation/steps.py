"""One step at a time, as a group of one: like a worker that raises what the product handles."""

from __future__ import annotations

import uuid

from moderation.models import Step, UndoStep
from moderation.models.steps import AnyStep
from moderation.operations.purging.execution import finish_steps
from moderation.operations.purging.quarantine import MAX_SURVIVOR_BYTES, QuarantinedStep, quarantine_steps
from moderation.operations.purging.stamping import stamp_steps
from moderation.operations.steps.claiming import StepLost, claim_steps
from moderation.operations.undo.restore import restore_steps
from moderation.store.pace import Pace


def claim_step(purge_id: int, *, token: uuid.UUID) -> AnyStep | None:
    """Claim one step."""
    return next(iter(claim_steps(purge_id, token=token, limit=1)), None)


def quarantine_step(step: Step, *, pace: Pace, max_bytes: int = MAX_SURVIVOR_BYTES) -> QuarantinedStep:
    """Quarantine the step. Raises `StepLost`."""
    quarantined = quarantine_steps([step], pace=pace, max_bytes=max_bytes)
    if step not in quarantined:
        raise StepLost(str(step))
    return quarantined[step]


def stamp_step(step: Step, quarantined: QuarantinedStep) -> None:
    """Stamp the step. Raises `StepLost`."""
    if not stamp_steps({step: quarantined}):
        raise StepLost(str(step))


def finish_step(step: Step, *, pace: Pace, quarantined: QuarantinedStep | None = None) -> None:
    """Delete, verify and count the step. Raises `StepLost`."""
    if not finish_steps([step], pace=pace, quarantined=None if quarantined is None else {step: quarantined}):
        raise StepLost(str(step))


def restore_step(step: UndoStep, *, pace: Pace) -> None:
    """Restore the step's messages and count it. Raises `StepLost`."""
    if not restore_steps([step], pace=pace):
        raise StepLost(str(step))
