"""States of purges as lists show them, and filters that select exactly the purges that are shown so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.db.models import Exists, OuterRef, QuerySet, Value

from moderation.domain.state_labels import AWAITING_APPROVAL, DISCARDED, shown_state
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge, PurgeApproval
from moderation.operations.access.visibility import APPROVE, Actor, decidable_requests

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


def awaiting_approval(user: Actor | None, purges: Sequence[Purge], *, known: Mapping[int, bool]) -> dict[int, bool]:
    """Return whether a user may approve those of some purges that wait for approval, by ID, in one query at most.

    known: the same of some of them.
    """
    ready = [purge.pk for purge in purges if purge.state == PurgeState.READY and purge.pk not in known]
    if not ready:
        return dict(known)
    waiting = PurgeApproval.objects.open().filter(purge__in=ready).order_by()
    return {**known, **dict(waiting.values_list("purge_id", may_decide(user, "purge_id")))}


def with_viewer(user: Actor, purges: QuerySet[Purge]) -> QuerySet[Purge]:
    """Annotate purges with awaits_viewer: they wait for approval, and the user may approve them."""
    return purges.annotate(awaits_viewer=may_decide(user, "pk"))


def may_decide(user: Actor | None, purge_id: str) -> Exists | Value:
    """Return whether a user may decide the open request of a purge, as SQL. purge_id: the column."""
    if user is None or not user.has_perm(APPROVE):
        return Value(False)
    return Exists(decidable_requests(user).filter(purge_id=OuterRef(purge_id)).order_by())


def shown_states(purges: Sequence[Purge], *, awaiting: Collection[int]) -> dict[int, str]:
    """Return the states that are shown, by the IDs of the purges, in one query at most.

    awaiting: IDs of those that wait for approval.
    """
    expired = [purge.pk for purge in purges if purge.state == PurgeState.EXPIRED]
    ends = AuditEntry.objects.filter(purge__in=expired, action="preview_discarded").order_by()
    discarded = {*(ends.values_list("purge_id", flat=True) if expired else ())}
    return {
        purge.pk: shown_state(purge.state, is_discarded=purge.pk in discarded, awaits_approval=purge.pk in awaiting)
        for purge in purges
    }


def with_shown_states(purges: QuerySet[Purge]) -> QuerySet[Purge]:
    """Annotate purges with what `shown_state` needs: is_discarded, awaits_approval."""
    (_, is_discarded), (_, awaits_approval) = _CONDITIONS[PurgeState.EXPIRED], _CONDITIONS[PurgeState.READY]
    return purges.annotate(is_discarded=is_discarded, awaits_approval=awaits_approval)
