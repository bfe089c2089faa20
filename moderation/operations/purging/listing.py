"""List of purges: newest first, paged by key, filtered by state and moderator."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from moderation.domain.states import ACTIVE_PURGES, CAN_BE_UNDONE, WITHOUT_COPIES, PurgeState
from moderation.models import Hold, ManifestBucket, Purge
from moderation.operations.access.visibility import Actor, visible_purges
from moderation.operations.holds import time_held
from moderation.operations.selection.summary import ListedPurge, describe_purges

PURGES_PER_PAGE = 30

STATE_FILTERS: dict[str, tuple[str, frozenset[PurgeState]]] = {
    "running": ("Running", ACTIVE_PURGES),
    "ready": ("Awaiting confirmation", frozenset({PurgeState.SCANNING, PurgeState.READY})),
    "done": ("Done", frozenset({PurgeState.DONE, PurgeState.DONE_WITH_FAILURES, PurgeState.UNDO_EXPIRED})),
    "undone": ("Restored", frozenset({PurgeState.UNDONE, PurgeState.PARTLY_UNDONE})),
    "erased": ("Erased", WITHOUT_COPIES),
    "cancelled": ("Cancelled", frozenset({PurgeState.CANCELLED, PurgeState.EXPIRED})),
}
"""Filters by state, with their labels."""


@dataclass(frozen=True, slots=True)
class PurgePage:
    """Page of the list. older: exclusive cursor of the next page, or None."""

    purges: Sequence[ListedPurge]
    older: int | None


def list_purges(
    user: Actor,
    *,
    state: str = "",
    moderator: str = "",
    channel_id: int | None = None,
    before: int | None = None,
    limit: int = PURGES_PER_PAGE,
) -> PurgePage:
    """Return the purges that a user may see. Raises `BadInput` for an unknown state."""
    purges = _in_state(user, state)
    if moderator:
        if "\x00" in moderator:
            raise BadInput(_("A name cannot contain a NUL character. Remove it."))
        purges = purges.filter(moderator__username=moderator)
    if channel_id is not None:
        # Purges that are still being scanned, or matched nothing, have the channel in their selection only.
        scanned = ManifestBucket.objects.filter(purge_id=OuterRef("pk"), channel_id=channel_id)
        purges = purges.filter(Exists(scanned) | Q(selection__channels__contains=[str(channel_id)]))
    if before is not None:
        purges = purges.filter(pk__lt=before)
    found = list(purges[: limit + 1])
    shown = found[:limit]
    return PurgePage(_with_undo_until(describe_purges(user, shown)), older=shown[-1].pk if len(found) > limit else None)


def list_newest(
    user: Actor, states: Sequence[str], *, limit: int, own: Collection[str] = ()
) -> dict[str, list[ListedPurge]]:
    """Return the newest purges of each state that a user may see. They are described together.

    own: states of which only the user's own purges are listed.
    """
    found = {}
    for state in states:
        purges = _in_state(user, state)
        found[state] = list((purges.filter(moderator_id=user.pk) if state in own else purges)[:limit])
    every = {purge.pk: purge for purges in found.values() for purge in purges}
    listed = {one.purge.pk: one for one in _with_undo_until(describe_purges(user, list(every.values())))}
    return {state: [listed[purge.pk] for purge in purges] for state, purges in found.items()}


def _in_state(user: Actor, state: str) -> QuerySet[Purge]:
    """Return a user's purges, newest first; of all states if none is given."""
    purges = visible_purges(user).defer("manifest_hash").order_by("-id")
    if not state:
        return purges
    if state not in STATE_FILTERS:
        raise BadInput(_("Unknown state “%(state)s”. Choose one of the filters.", state=state))
    return purges.filter(state__in=STATE_FILTERS[state][1])


def _with_undo_until(listed: Sequence[ListedPurge]) -> list[ListedPurge]:
    """Add the end of the undo period to purges that can still be undone."""
    offered = [one.purge for one in listed if one.purge.state in CAN_BE_UNDONE]
    now, days, any_hold = timezone.now(), dt.timedelta(days=settings.QUARANTINE_DAYS), Hold.objects.exists()
    until: dict[int, dt.datetime] = {}
    for purge in offered:
        if purge.quarantined_at is not None:
            until[purge.pk] = purge.quarantined_at + days
            if any_hold:
                until[purge.pk] += time_held(purge, since=purge.quarantined_at)
    still = {purge_id: time for purge_id, time in until.items() if now < time}
    return [replace(one, undo_until=still.get(one.purge.pk)) for one in listed]
