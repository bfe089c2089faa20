"""Purges that wait for the viewer: one list for Home and for the page of all purges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moderation.domain.state_labels import AWAITING_APPROVAL
from moderation.domain.states import PurgeState
from moderation.models import Erasure, Purge, PurgeApproval
from moderation.operations.access.staff_names import mark_shared_names
from moderation.operations.access.visibility import ADD_PURGE, VIEW_PURGES, Actor, may_over_visible
from moderation.operations.erasure.requests import open_requests
from moderation.operations.purging.approvals import open_approvals
from moderation.operations.purging.listing import newest_purges, newest_stopped
from moderation.operations.selection.summary import ListedPurge
from moderation.operations.undo.listed_purges import describe_lists

STOPPED_PURGES = 6
"""Previews, and purges that stopped, that are read."""


@dataclass(frozen=True, slots=True)
class Attention:
    """What waits for the viewer: requests for approval and for permanent deletion, previews, and purges that stopped.

    These are paused, or have ended with messages that failed. waits_for_others: the previews and paused purges that do
    not wait for the viewer.
    """

    approval_requests: Sequence[tuple[ListedPurge, PurgeApproval]]
    erasure_requests: Sequence[tuple[ListedPurge, Erasure]]
    stopped: Sequence[ListedPurge]
    waits_for_others: Sequence[ListedPurge]

    def as_context(self) -> dict[str, object]:
        """Return the context of the lines, which the notices on the page count too."""
        return {
            "approval_requests": self.approval_requests,
            "erasure_requests": self.erasure_requests,
            "attention": self.stopped,
        }


def list_attention(user: Actor, *others: Sequence[Purge]) -> tuple[Attention, list[list[ListedPurge]]]:
    """Return what waits for the user, and other lists of the page: all purges are described together.

    others: previews in them wait for the approval of other people.
    """
    approvals, erasures = open_approvals(user), open_requests(user)
    requesters = [*(one.requested_by for one in approvals), *(one.requested_by for one in erasures)]
    mark_shared_names(user, requesters, right=VIEW_PURGES)
    ready, halted, to_approve, to_erase, *described = describe_lists(
        user,
        [
            newest_purges(user, (PurgeState.READY,), limit=STOPPED_PURGES),
            newest_stopped(user, limit=STOPPED_PURGES),
            [approval.purge for approval in approvals],
            [erasure.purge for erasure in erasures],
            *others,
        ],
        requested={
            **{purge.pk: False for purges in others for purge in purges if purge.state == PurgeState.READY},
            **{approval.purge_id: True for approval in approvals},
        },
    )
    stopped = sorted([*ready, *halted], key=lambda listed: listed.purge.pk, reverse=True)
    own = [listed for listed in stopped if _may_continue(user, listed)]
    attention = Attention(
        approval_requests=list(zip(to_approve, approvals, strict=True)),
        erasure_requests=list(zip(to_erase, erasures, strict=True)),
        stopped=own,
        waits_for_others=[
            listed for listed in stopped if listed not in own and listed.purge.state != PurgeState.DONE_WITH_FAILURES
        ],
    )
    return attention, described


def _may_continue(user: Actor, listed: ListedPurge) -> bool:
    """Return whether a preview, or a purge that stopped, waits for the user, not for the approval of another person."""
    return listed.shown_state != AWAITING_APPROVAL and may_over_visible(user, ADD_PURGE, listed.purge)
