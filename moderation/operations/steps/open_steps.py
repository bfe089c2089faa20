"""Open steps, of purges and of undos.

A purge has open steps of one kind at a time. An undo begins only when no step of the purge is open; from then on the
purge is *undoing*, until all steps of the undo are counted.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from django.db.models import Exists, OuterRef, Q

from moderation.domain.states import PurgeState
from moderation.models import Purge, Step, UndoStep
from moderation.models.steps import StepQuerySet, UndoStepQuerySet

STEP_MODELS: tuple[type[Step], type[UndoStep]] = (Step, UndoStep)


def open_steps(purge: Purge) -> StepQuerySet | UndoStepQuerySet:
    """Return the open steps of a purge: while it is *undoing* those of the undo, otherwise its own."""
    return purge.undo_steps.open() if purge.state == PurgeState.UNDOING else purge.steps.open()


def has_open_step(*conditions: Q) -> Q:
    """Return a condition for purges that have an open step, of either kind, which meets all conditions."""
    steps = [model.objects.open().filter(*conditions, purge_id=OuterRef("id")) for model in STEP_MODELS]
    return reduce(or_, (Q(Exists(chosen)) for chosen in steps))
