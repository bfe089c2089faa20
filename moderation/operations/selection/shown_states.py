"""States of purges as lists show them, and filters that select exactly the purges that are shown so."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db.models import Exists, OuterRef, QuerySet

from moderation.domain.state_labels import AWAITING_APPROVAL, DISCARDED, shown_state
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge, PurgeApproval

_CONDITIONS: dict[PurgeState, tuple[str, Exists]] = {
    PurgeState.EXPIRED: (
        DISCARDED,
        Exists(AuditEntry.objects.filter(purge=OuterRef("pk"), action="preview_discarded").order_by()),
    ),
    PurgeState.READY: (
        AWAITING_APPROVAL,
        Exists(PurgeApproval.objects.open().filter(purge=OuterRef("pk")).order_by()),
    ),
}
"""States of which some purges are shown in another state, and the condition of those."""


def filter_by_shown_state(purges: QuerySet[Purge], shown: str) -> QuerySet[Purge]:
    """Return the purges that are shown in a state, which is a key of `STATE_LABELS`."""
    for state, (other, condition) in _CONDITIONS.items():
        if shown == other:
            return purges.filter(condition, state=state)
        if shown == state:
            return purges.filter(~condition, state=state)
    return purges.filter(state=shown)


def shown_states(purges: Sequence[Purge], *, requested: Collection[int] = ()) -> dict[int, str]:
    """Return the states that are shown, by the IDs of the purges, in two queries at most.

    requested: IDs of purges that wait for approval, for callers that have read some of them already.
    """
    ready = [purge.pk for purge in purges if purge.state == PurgeState.READY and purge.pk not in requested]
    expired = [purge.pk for purge in purges if purge.state == PurgeState.EXPIRED]
    others = PurgeApproval.objects.open().filter(purge__in=ready).order_by().values_list("purge_id", flat=True)
    ends = AuditEntry.objects.filter(purge__in=expired, action="preview_discarded").order_by()
    awaiting = {*requested, *(others if ready else ())}
    discarded = {*(ends.values_list("purge_id", flat=True) if expired else ())}
    return {
        purge.pk: shown_state(purge.state, is_discarded=purge.pk in discarded, awaits_approval=purge.pk in awaiting)
        for purge in purges
    }


def with_shown_states(purges: QuerySet[Purge]) -> QuerySet[Purge]:
    """Annotate purges with what `shown_state` needs: is_discarded, awaits_approval."""
    (_, is_discarded), (_, awaits_approval) = _CONDITIONS[PurgeState.EXPIRED], _CONDITIONS[PurgeState.READY]
    return purges.annotate(is_discarded=is_discarded, awaits_approval=awaits_approval)
