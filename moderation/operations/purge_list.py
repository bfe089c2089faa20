"""The list of purges: newest first, by key, filtered by state and moderator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q

from chatstore.domain.errors import BadInput
from moderation.domain.states import ACTIVE_PURGES, PurgeState
from moderation.models import ManifestBucket
from moderation.operations.access import Actor, visible_purges
from moderation.operations.sentences import ListedPurge, describe_purges

PURGES_A_PAGE = 30

STATE_FILTERS: dict[str, tuple[str, frozenset[PurgeState]]] = {
    "running": ("Running", ACTIVE_PURGES),
    "ready": ("To be confirmed", frozenset({PurgeState.SCANNING, PurgeState.READY})),
    "done": ("Done", frozenset({PurgeState.DONE, PurgeState.DONE_WITH_FAILURES, PurgeState.UNDO_EXPIRED})),
    "undone": ("Brought back", frozenset({PurgeState.UNDONE, PurgeState.PARTLY_UNDONE})),
    "cancelled": ("Cancelled", frozenset({PurgeState.CANCELLED, PurgeState.EXPIRED})),
}
"""What a person filters by, with its words."""


@dataclass(frozen=True, slots=True)
class PurgePage:
    """A page of the list. older: exclusive cursor of the next page, or None."""

    purges: Sequence[ListedPurge]
    older: int | None


def list_purges(
    user: Actor,
    *,
    state: str = "",
    moderator: str = "",
    channel_id: int | None = None,
    before: int | None = None,
    limit: int = PURGES_A_PAGE,
) -> PurgePage:
    """The purges a user may see. Raises `BadInput` for an unknown state."""
    purges = visible_purges(user).defer("digest").order_by("-id")
    if state:
        if state not in STATE_FILTERS:
            raise BadInput(f"There is no state {state!r} to filter by.")
        purges = purges.filter(state__in=STATE_FILTERS[state][1])
    if moderator:
        if "\x00" in moderator:
            raise BadInput("A name cannot hold a NUL character.")
        purges = purges.filter(moderator__username=moderator)
    if channel_id is not None:
        # Of one that is still scanned, or matched nothing, only the selection names the channel.
        scanned = ManifestBucket.objects.filter(purge_id=OuterRef("pk"), channel_id=channel_id)
        purges = purges.filter(Exists(scanned) | Q(selection__channels__contains=[str(channel_id)]))
    if before is not None:
        purges = purges.filter(pk__lt=before)
    found = list(purges[: limit + 1])
    shown = found[:limit]
    return PurgePage(describe_purges(user, shown), older=shown[-1].pk if len(found) > limit else None)
