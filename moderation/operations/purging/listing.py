"""List of purges: newest first, paged by key, filtered by state and moderator."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from django.db.models import Exists, OuterRef, Q, QuerySet

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel
from chatstore.operations.rights import scope_for
from moderation.domain.selection import Selection
from moderation.domain.state_labels import STATE_LABELS, label_of_state, shown_state
from moderation.domain.states import ACTIVE_PURGES, EXPIRES_FROM, PurgeState
from moderation.models import ManifestBucket, ManifestSummary, Purge, PurgeApproval, Step
from moderation.operations.access.staff_names import mark_shared_names
from moderation.operations.access.visibility import (
    ADD_PURGE,
    APPROVE,
    VIEW_PURGES,
    Actor,
    decidable_requests,
    purges_within,
    visible_channels,
    visible_purges,
)
from moderation.operations.selection.shown_states import filter_by_shown_state, may_decide, with_viewer
from moderation.operations.selection.summary import ListedPurge, describe_purges
from moderation.operations.steps.totals import count_each_still_deleted
from moderation.operations.undo.listed_purges import with_list_facts, with_undo_until

PURGES_PER_PAGE = 30

MAX_PLACES = 2
"""Channels that are named for each purge in the list of what was deleted recently."""

MAX_UNDER_WAY = 3
"""Purges of a channel that are shown beside its raid."""

_OWN_ONLY = frozenset({PurgeState.SCANNING, PurgeState.READY})
"""States of previews, which are listed on Home for their moderator only, unless they wait for approval."""


@dataclass(frozen=True, slots=True)
class DeletedPurge:
    """A purge whose messages are deleted. count: those that are still deleted.

    places: the largest of its channels, of those that the viewer may see. other_places: number of the others.
    may_restore: whether the viewer may restore them, and the undo period has not ended.
    """

    listed: ListedPurge
    count: int
    places: Sequence[Channel]
    other_places: int
    may_restore: bool


@dataclass(frozen=True, slots=True)
class DeletedPage:
    """Page of what was deleted recently. older: exclusive cursor of the next page, or None."""

    purges: Sequence[DeletedPurge]
    older: int | None


@dataclass(frozen=True, slots=True)
class ShownPurge:
    """A purge with its state in words."""

    purge: Purge
    state_label: str


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
    """Return the purges that a user may see. state: as the list shows it, a key of `STATE_LABELS`.

    Raises `BadInput` for an unknown state.
    """
    purges = _by_moderator(_in_state(user, state), moderator)
    if channel_id is not None:
        # Purges that are still being scanned, or matched nothing, have the channel in their selection only.
        scanned = ManifestBucket.objects.filter(channel_id=channel_id).order_by().values_list("purge_id")
        selected = Purge.objects.filter(selection__channels__contains=[str(channel_id)]).order_by().values_list("pk")
        # Each by its index; a condition with OR would be tested for one purge after the other.
        purges = purges.filter(pk__in=scanned.union(selected))
    if before is not None:
        purges = purges.filter(pk__lt=before)
    found = list(purges[: limit + 1])
    shown = found[:limit]
    listed = with_list_facts(user, describe_purges(user, shown))
    return PurgePage(listed, older=shown[-1].pk if len(found) > limit else None)


def list_deleted(user: Actor, *, moderator: str = "", before: int | None = None) -> DeletedPage:
    """Return the purges that ended and whose undo period has not, those that began to delete last first.

    before: the last purge of the page before.
    """
    began = visible_purges(user).filter(state__in=EXPIRES_FROM, quarantined_at__isnull=False)
    purges = _by_moderator(began, moderator).defer("manifest_hash").order_by("-quarantined_at", "-id")
    if before is not None:
        at = visible_purges(user).filter(pk=before).values_list("quarantined_at", flat=True).first()
        if at is None:
            return DeletedPage((), None)
        purges = purges.filter(Q(quarantined_at__lt=at) | Q(quarantined_at=at, pk__lt=before), quarantined_at__lte=at)
    found = list(purges[: PURGES_PER_PAGE + 1])
    shown = found[:PURGES_PER_PAGE]
    older = shown[-1].pk if len(found) > PURGES_PER_PAGE else None
    mark_shared_names(user, (purge.moderator for purge in shown), right=VIEW_PURGES)
    return DeletedPage(_with_places(user, with_undo_until(describe_purges(user, shown))), older)


def _with_places(user: Actor, listed: Sequence[ListedPurge]) -> list[DeletedPurge]:
    """Add the channels, the numbers of messages that are still deleted, and the right, in four statements."""
    ids = [one.purge.pk for one in listed]
    summaries = ManifestSummary.objects.filter(pk__in=ids).values_list("pk", "data__channels", "data__channel_count")
    places = {pk: ([int(row[0]) for row in rows or ()], int(count or 0)) for pk, rows, count in summaries}
    channels = visible_channels(user).in_bulk({channel_id for shown, _count in places.values() for channel_id in shown})
    counts = count_each_still_deleted(ids)
    own = purges_within(user, ADD_PURGE, ids)
    deleted = []
    for one in listed:
        shown, channel_count = places.get(one.purge.pk, ([], 0))
        here = [channels[channel_id] for channel_id in shown if channel_id in channels][:MAX_PLACES]
        count = counts.get(one.purge.pk, 0)
        may_restore = count > 0 and one.undo_until is not None and one.purge.pk in own
        deleted.append(DeletedPurge(one, count, here, max(channel_count - len(here), 0), may_restore))
    return deleted


def list_under_way(user: Actor, channel_id: int, *, since: dt.datetime) -> list[ListedPurge]:
    """Return the visible purges that name a channel, were drafted since a time, and run or wait for approval.

    Newest first. Previews are work of one moderator until approval is requested.
    """
    here = list(_under_way(user).filter(_names_since(channel_id, since))[:MAX_UNDER_WAY])
    ready = [purge.pk for purge in here if purge.state == PurgeState.READY]
    requests = PurgeApproval.objects.open().filter(purge__in=ready) if ready else PurgeApproval.objects.none()
    found = list(requests.annotate(awaits_viewer=may_decide(user, "purge_id")))
    until = {request.purge_id: request.expires_at for request in found}
    requested = {request.purge_id: getattr(request, "awaits_viewer", False) for request in found}
    listed = with_list_facts(user, describe_purges(user, here, requested=requested))
    return [replace(one, approvable_until=until.get(one.purge.pk)) for one in listed]


def newest_under_way(user: Actor, since: Mapping[int, dt.datetime]) -> dict[int, ShownPurge]:
    """Return the newest of these purges for each channel that has one, in one statement; in none without channels."""
    if not since:
        return {}
    within = reduce(or_, (_names_since(channel_id, start) for channel_id, start in since.items()))
    purges = with_viewer(user, _under_way(user).filter(within)).defer("manifest_hash").order_by("-id")
    newest: dict[int, ShownPurge] = {}
    for purge in purges[: MAX_UNDER_WAY * len(since)]:
        # A preview is under way only while it waits for approval.
        state = shown_state(purge.state, awaits_approval=True)
        shown = ShownPurge(purge, label_of_state(state, awaits_viewer=getattr(purge, "awaits_viewer", False)))
        for channel_id in Selection.from_json(purge.selection).channel_ids:
            if channel_id in since and purge.created_at >= since[channel_id]:
                newest.setdefault(channel_id, shown)
    return newest


def _under_way(user: Actor) -> QuerySet[Purge]:
    awaiting = PurgeApproval.objects.open().filter(purge_id=OuterRef("pk"))
    return visible_purges(user).filter(Q(state__in=ACTIVE_PURGES) | Q(Exists(awaiting), state=PurgeState.READY))


def _names_since(channel_id: int, since: dt.datetime) -> Q:
    return Q(selection__channels__contains=[str(channel_id)], created_at__gte=since)


def newest_purges(user: Actor, states: Collection[PurgeState], *, limit: int) -> list[Purge]:
    """Return the newest purges in some states that a user may see, without the previews of other moderators."""
    return list(_newest_first(user).filter(_without_previews_of_others(user), state__in=states)[:limit])


def newest_stopped(user: Actor, *, limit: int) -> list[Purge]:
    """Return the newest visible purges that are paused, or have ended without some messages because these failed."""
    has_failed = Exists(Step.objects.filter(purge_id=OuterRef("pk"), failed__gt=0).order_by())
    purges = _newest_first(user).filter(state__in=(PurgeState.PAUSED, PurgeState.DONE_WITH_FAILURES))
    return list(purges.filter(Q(state=PurgeState.PAUSED) | has_failed)[:limit])


def newest_in_progress(user: Actor, states: Collection[PurgeState], *, limit: int) -> list[Purge]:
    """Return what `newest_purges` does, and other moderators' purges that wait for approval, in one statement.

    Without those that the user may approve, whose requests `open_approvals` returns.
    """
    if scope_for(user, APPROVE) == scope_for(user, VIEW_PURGES):
        # All that wait are among those to decide.
        return newest_purges(user, states, limit=limit)
    requests = PurgeApproval.objects.open().filter(purge_id=OuterRef("pk")).order_by()
    if user.has_perm(APPROVE):
        requests = requests.exclude(pk__in=decidable_requests(user).order_by().values("pk"))
    awaits_others = Q(Exists(requests), state=PurgeState.READY) & ~Q(moderator_id=user.pk)
    in_progress = Q(_without_previews_of_others(user), state__in=states)
    # The states of both first: an index finds them.
    purges = _newest_first(user).filter(state__in=[*states, PurgeState.READY])
    return list(purges.filter(in_progress | awaits_others)[:limit])


def _without_previews_of_others(user: Actor) -> Q:
    return ~Q(state__in=_OWN_ONLY) | Q(moderator_id=user.pk)


def _by_moderator(purges: QuerySet[Purge], moderator: str) -> QuerySet[Purge]:
    """Return the purges of the moderator with a user name; all without one. Raises `BadInput`."""
    if "\x00" in moderator:
        raise BadInput(_("A name cannot contain a NUL character. Remove it."))
    return purges.filter(moderator__username=moderator) if moderator else purges


def _in_state(user: Actor, state: str) -> QuerySet[Purge]:
    """Return a user's purges, newest first; of all states if none is given."""
    purges = _newest_first(user)
    if not state:
        return purges
    if state not in STATE_LABELS:
        raise BadInput(_("Unknown state “%(state)s”. Choose one of the filters.", state=state))
    return filter_by_shown_state(purges, state)


def _newest_first(user: Actor) -> QuerySet[Purge]:
    return visible_purges(user).defer("manifest_hash").order_by("-id")
