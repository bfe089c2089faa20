"""Cancelling and reopening of a purge's steps, some in a transaction, because a large purge has 50,000."""

from __future__ import annotations

from django.db.models import Q

from moderation.domain.packing import unpack_ids
from moderation.domain.states import STEP_STATES, StepState
from moderation.models import Purge, Step
from moderation.operations.steps.open_steps import STEP_ORDER
from moderation.operations.steps.split import split_step

MAX_STEPS_AT_ONCE = 2_000
"""Maximum number of steps that are cancelled or reopened in one transaction, which locks the purge."""

MAX_SPLITS_AT_ONCE = 200
"""The same while there are steps of which some messages failed: each is split by statements of its own."""


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
    """Reopen the next steps that were cancelled, or else failed or kept by a hold; return whether there were any.

    Stores how far that is. A purge that has cancelled steps is finished, one that has none is retried. The caller's
    transaction locks the purge's row.
    """
    after = Q() if purge.reopened_to is None else Q(ordinal__gt=purge.reopened_to)
    ended = purge.steps.filter(after)
    cancelled = ended.filter(state=StepState.CANCELLED)
    left = cancelled if cancelled.exists() else ended.filter(_FAILED | _PARTLY_FAILED)
    limit = MAX_SPLITS_AT_ONCE if left.filter(_PARTLY_FAILED).exists() else MAX_STEPS_AT_ONCE
    ordinals = list(left.order_by("ordinal").values_list("ordinal", flat=True)[: limit + 1])
    some = purge.steps.filter(ordinal__in=ordinals[:limit])
    for step in some.filter(_PARTLY_FAILED).order_by("ordinal"):
        split_step(step, unpack_ids(step.failed_ids))
        some.filter(ordinal=step.ordinal).update(failed=0, failed_ids=None, error="")
    some.filter(_FAILED | Q(state=StepState.CANCELLED)).update(
        state=StepState.PENDING, failed=0, failed_ids=None, held=0, error="", counted_at=None
    )
    purge.reopened_to = ordinals[limit - 1] if len(ordinals) > limit else None
    Purge.objects.filter(id=purge.pk).update(reopened_to=purge.reopened_to)
    return bool(ordinals)


_FAILED = Q(state__in=(StepState.FAILED, StepState.HELD))
_PARTLY_FAILED = Q(state=StepState.COUNTED, failed__gt=0)
