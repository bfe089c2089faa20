"""Totals of a purge, which always add up: deleted + already gone + held + failed + left = manifest."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.db.models import Q, Sum

from moderation.domain.states import STEP_STATES, StepKind
from moderation.models import Purge


@dataclass(frozen=True, slots=True)
class PurgeTotals:
    """Counts of verified outcomes. left: messages without an outcome so far, or ever if the purge was cancelled.

    later: the part of `left` that is deferred until it is over an hour old.
    """

    manifest: int
    deleted: int
    already_gone: int
    held: int
    failed: int
    left: int
    later: int

    def as_json(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)


def totals_of(purge: Purge) -> PurgeTotals:
    """Add up the steps of a purge."""
    is_deferred = Q(kind=StepKind.LATER) & ~Q(state__in=STEP_STATES.final)
    total = purge.steps.aggregate(
        deleted=Sum("deleted", default=0),
        already_gone=Sum("already_gone", default=0),
        held=Sum("held", default=0),
        failed=Sum("failed", default=0),
        later=Sum("count", filter=is_deferred, default=0),
    )
    outcomes = total["deleted"] + total["already_gone"] + total["held"] + total["failed"]
    return PurgeTotals(manifest=purge.manifest, left=purge.manifest - outcomes, **total)
