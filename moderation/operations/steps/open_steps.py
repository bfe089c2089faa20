"""Open steps, of purges and of undos.

A purge has open steps of one kind at a time. An undo begins only when no step of the purge is open; from then on the
purge is *undoing*, until all steps of the undo are counted.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from django.db.models import Exists, F, OuterRef, Q

from moderation.domain.states import PurgeState
from moderation.models import Purge, Step, Undo, UndoStep
from moderation.models.steps import StepQuerySet, UndoStepQuerySet

STEP_MODELS: tuple[type[Step], type[UndoStep]] = (Step, UndoStep)

STEP_ORDER = (F("due_at").asc(nulls_first=True), "ordinal")
"""Order of claims: steps that were never delayed, by ordinal, then the others by the time at which they became due.

A failing bucket, which is requeued, therefore does not delay the others. The order among steps of a purge and of an
undo never matters: only one of the two kinds is open.
"""

IS_INCOMPLETE = Q(finished_at=None, steps_created_to__isnull=False)
"""Condition for undos that do not have all of their steps yet."""

HAS_STEPS_TO_OPEN = Q(reopened_to__isnull=False) | Exists(Undo.objects.filter(IS_INCOMPLETE, purge_id=OuterRef("id")))
"""Condition for purges that do not have all of their steps open yet."""


def open_steps(purge: Purge) -> StepQuerySet | UndoStepQuerySet:
    """Return the open steps of a purge: while it is *undoing* those of the undo, otherwise its own."""
    return purge.undo_steps.open() if purge.state == PurgeState.UNDOING else purge.steps.open()


def are_steps_open(purge: Purge) -> bool:
    """Return whether a purge has open steps."""
    # In the order of the index: without one, Postgres may read all steps that have ended.
    return open_steps(purge).order_by(*STEP_ORDER).values_list("ordinal").first() is not None


def has_open_step(*conditions: Q) -> Q:
    """Return a condition for purges that have an open step, of either kind, which meets all conditions."""
    steps = [model.objects.open().filter(*conditions, purge_id=OuterRef("id")) for model in STEP_MODELS]
    return reduce(or_, (Q(Exists(chosen)) for chosen in steps))
