"""Cancelling and reopening of a purge's steps, some in a transaction, because a large purge has 50,000."""

from __future__ import annotations

from moderation.domain.states import STEP_STATES, StepState
from moderation.models import Purge, Step
from moderation.operations.steps.open_steps import STEP_ORDER

MAX_STEPS_AT_ONCE = 2_000
"""Maximum number of steps that are cancelled or reopened in one transaction, which locks the purge."""


def cancel_next_steps(purge: Purge, *, claimed: bool = False) -> bool:
    """Cancel the next steps that no worker has and that are not stamped; return whether there may be more.

    claimed: also those that a worker has. The caller's transaction locks the purge's row.
    """
    unstamped = purge.steps.open().filter(state__in=STEP_STATES.before_stamped)
    idle = unstamped if claimed else unstamped.free()
    keys = list(idle.order_by(*STEP_ORDER).values_list("pk", flat=True)[:MAX_STEPS_AT_ONCE])
    Step.objects.with_keys(keys).update(state=StepState.CANCELLED, token=None, lease_until=None)
    return len(keys) == MAX_STEPS_AT_ONCE


def reopen_next_steps(purge: Purge) -> bool:
    """Reopen the next cancelled steps, and store how far that is; return whether there were any.

    The caller's transaction locks the purge's row.
    """
    cancelled = purge.steps.filter(state=StepState.CANCELLED)
    if purge.reopened_to is not None:
        cancelled = cancelled.filter(ordinal__gt=purge.reopened_to)
    ordinals = list(cancelled.order_by("ordinal").values_list("ordinal", flat=True)[:MAX_STEPS_AT_ONCE])
    purge.steps.filter(ordinal__in=ordinals).update(state=StepState.PENDING)
    purge.reopened_to = ordinals[-1] if len(ordinals) == MAX_STEPS_AT_ONCE else None
    Purge.objects.filter(id=purge.pk).update(reopened_to=purge.reopened_to)
    return bool(ordinals)
