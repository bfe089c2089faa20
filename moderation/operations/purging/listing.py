"""List of purges: newest first, paged by key, filtered by state and moderator."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from django.conf import settings
from django.db.models import F, Q, QuerySet, Sum
from django.utils import timezone

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel
from moderation.domain.state_labels import STATE_LABELS
from moderation.domain.states import ACTIVE_PURGES, CAN_BE_UNDONE, EXPIRES_FROM, PurgeState
from moderation.models import Hold, ManifestBucket, ManifestSummary, Purge, PurgePeriod, Undo
from moderation.operations.access.staff_names import mark_shared_names
from moderation.operations.access.visibility import VIEW_PURGES, Actor, visible_channels, visible_purges
from moderation.operations.holds import times_held
from moderation.operations.selection.shown_states import filter_by_shown_state
from moderation.operations.selection.summary import ListedProgress, ListedPurge, describe_purges
from moderation.operations.steps.totals import count_decided

PURGES_PER_PAGE = 30

MAX_PLACES = 2
"""Channels that are named for each purge in the list of what was deleted recently."""

_OWN_ONLY = frozenset({PurgeState.SCANNING, PurgeState.READY})
"""States of previews, which are listed on Home for their moderator only."""

_PROGRESSING = ACTIVE_PURGES - {PurgeState.UNDOING}
"""States in which a purge has deleted some of its messages; a queued one has if it was continued."""

_MAY_HAVE_LEFT_MESSAGES = frozenset(
    {PurgeState.CANCELLED, PurgeState.DONE_WITH_FAILURES, PurgeState.PARTLY_UNDONE, PurgeState.UNDO_EXPIRED}
)
"""Ended purges of whose manifest some messages may still be in their channels, or again."""


@dataclass(frozen=True, slots=True)
class DeletedPurge:
    """A purge whose messages are deleted. count: those that are still deleted.

    places: the largest of its channels, of those that the viewer may see. other_places: number of the others.
    """

    listed: ListedPurge
    count: int
    places: Sequence[Channel]
    other_places: int


@dataclass(frozen=True, slots=True)
class DeletedPage:
    """Page of what was deleted recently. older: exclusive cursor of the next page, or None."""

    purges: Sequence[DeletedPurge]
    older: int | None


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
    return DeletedPage(_with_places(user, _with_undo_until(describe_purges(user, shown))), older)


def _with_places(user: Actor, listed: Sequence[ListedPurge]) -> list[DeletedPurge]:
    """Add the channels and the numbers of messages that are still deleted, in three statements."""
    ids = [one.purge.pk for one in listed]
    summaries = ManifestSummary.objects.filter(pk__in=ids).values_list("pk", "data__channels", "data__channel_count")
    places = {pk: ([int(row[0]) for row in rows or ()], int(count or 0)) for pk, rows, count in summaries}
    channels = visible_channels(user).in_bulk({channel_id for shown, _count in places.values() for channel_id in shown})
    counts = _count_still_deleted(ids)
    deleted = []
    for one in listed:
        shown, channel_count = places.get(one.purge.pk, ([], 0))
        here = [channels[channel_id] for channel_id in shown if channel_id in channels][:MAX_PLACES]
        deleted.append(DeletedPurge(one, counts.get(one.purge.pk, 0), here, max(channel_count - len(here), 0)))
    return deleted


def _count_still_deleted(ids: Sequence[int]) -> dict[int, int]:
    """Return the number of messages that purges deleted or found already gone, without restored ones, by their IDs."""
    left = Sum(F("deleted") + F("already_gone") - F("undone"))
    counts = PurgePeriod.objects.filter(purge_id__in=ids).order_by().values_list("purge_id").annotate(left=left)
    return {purge_id: int(count) for purge_id, count in counts}


def newest_purges(user: Actor, states: Collection[PurgeState], *, limit: int) -> list[Purge]:
    """Return the newest purges in some states that a user may see, without the previews of other moderators."""
    purges = _newest_first(user).filter(state__in=states)
    return list(purges.exclude(Q(state__in=_OWN_ONLY) & ~Q(moderator_id=user.pk))[:limit])


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


def describe_lists(
    user: Actor, lists: Sequence[Sequence[Purge]], *, requested: Collection[int] = ()
) -> list[list[ListedPurge]]:
    """Return several lists of purges as one list shows them, in as many queries as one list.

    requested: IDs of purges that wait for approval.
    """
    described = describe_purges(user, [*chain.from_iterable(lists)], requested=requested)
    listed = iter(with_list_facts(user, described))
    return [list(islice(listed, len(purges))) for purges in lists]


def with_list_facts(user: Actor, listed: Sequence[ListedPurge]) -> list[ListedPurge]:
    """Add what a list shows of its purges, in the same number of statements for any number of them.

    How far those are that run; of those that have ended, until when they can be undone, and how much they deleted if it
    was not all; and which moderators share a name.
    """
    mark_shared_names(user, (one.purge.moderator for one in listed), right=VIEW_PURGES)
    return _with_outcomes(_with_progress(listed))


def _with_progress(listed: Sequence[ListedPurge]) -> list[ListedPurge]:
    """Add to purges that run, or are being undone, how far they are: the numbers of their pages."""
    running = [one.purge.pk for one in listed if one.purge.state in _PROGRESSING]
    undoing = [one.purge.pk for one in listed if one.purge.state == PurgeState.UNDOING]
    done = count_decided(running) if running else {}
    undos = Undo.objects.filter(purge__in=undoing, finished_at=None).order_by("pk") if undoing else ()
    latest = {undo.purge_id: undo for undo in undos}
    shown = []
    for one in listed:
        purge, progress = one.purge, None
        if purge.pk in done and (done[purge.pk] or purge.state != PurgeState.QUEUED):
            progress = ListedProgress(done[purge.pk], purge.manifest)
        elif undo := latest.get(purge.pk):
            progress = ListedProgress(undo.requested, max(undo.expected or 0, undo.requested))
        shown.append(replace(one, progress=progress) if progress and progress.total else one)
    return shown


def _with_outcomes(listed: Sequence[ListedPurge]) -> list[ListedPurge]:
    """Add to purges that have ended until when they can be undone, and how much they deleted if it was not all."""
    ended = [one.purge.pk for one in listed if one.purge.state in _MAY_HAVE_LEFT_MESSAGES]
    counts = _count_still_deleted(ended) if ended else {}
    deleted = {purge_id: counts.get(purge_id, 0) for purge_id in ended}
    return [
        replace(one, still_deleted=count) if count is not None and count < one.purge.manifest else one
        for one in _with_undo_until(listed)
        for count in [deleted.get(one.purge.pk)]
    ]


def _with_undo_until(listed: Sequence[ListedPurge]) -> list[ListedPurge]:
    """Add the end of the undo period to purges that have ended and can still be undone."""
    # A paused purge goes on: its page says until when its part can be undone, which takes long for a large one.
    ended = CAN_BE_UNDONE - {PurgeState.PAUSED}
    since = {
        one.purge: one.purge.quarantined_at
        for one in listed
        if one.purge.state in ended and one.purge.quarantined_at is not None
    }
    now, days = timezone.now(), dt.timedelta(days=settings.QUARANTINE_DAYS)
    held = times_held(since) if since and Hold.objects.exists() else {}
    until = {purge.pk: time + days + held.get(purge.pk, dt.timedelta()) for purge, time in since.items()}
    still = {purge_id: time for purge_id, time in until.items() if now < time}
    return [replace(one, undo_until=still.get(one.purge.pk)) for one in listed]
