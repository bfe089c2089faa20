"""What lists show of purges beside their summaries: progress, outcome, the end of the undo period, shared names."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from django.conf import settings
from django.utils import timezone

from moderation.domain.states import ACTIVE_PURGES, CAN_BE_UNDONE, PurgeState
from moderation.models import Hold, Purge, Undo
from moderation.operations.access.staff_names import mark_shared_names
from moderation.operations.access.visibility import VIEW_PURGES, Actor
from moderation.operations.holds import times_held
from moderation.operations.selection.summary import ListedProgress, ListedPurge, describe_purges
from moderation.operations.steps.totals import EndedCounts, count_decided, count_each_ended
from moderation.operations.undo.requests import UndoPeriod

_PROGRESSING = ACTIVE_PURGES - {PurgeState.UNDOING}
"""States in which a purge has deleted some of its messages; a queued one has if it was continued."""

_MAY_HAVE_LEFT_MESSAGES = frozenset(
    {PurgeState.CANCELLED, PurgeState.DONE_WITH_FAILURES, PurgeState.PARTLY_UNDONE, PurgeState.UNDO_EXPIRED}
)
"""Ended purges of whose manifest some messages may still be in their channels, or again."""


def describe_lists(
    user: Actor, lists: Sequence[Sequence[Purge]], *, requested: Mapping[int, bool] | None = None
) -> list[list[ListedPurge]]:
    """Return several lists of purges as one list shows them, in as many queries as one list.

    requested: IDs of purges that wait for approval, with whether the user may approve them.
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
    counts = count_each_ended(ended) if ended else {}
    return [
        _with_counts(one, counts[one.purge.pk]) if one.purge.pk in counts else one for one in with_undo_until(listed)
    ]


def _with_counts(listed: ListedPurge, counts: EndedCounts) -> ListedPurge:
    is_part = counts.still_deleted < listed.purge.manifest
    still_deleted = counts.still_deleted if is_part else None
    return replace(listed, still_deleted=still_deleted, failed=counts.failed, held=counts.held)


def with_undo_until(listed: Sequence[ListedPurge]) -> list[ListedPurge]:
    """Add until when purges that have ended can be undone, if they still can, as `UndoPeriod.shown_until`."""
    # A paused purge goes on: its page says until when its part can be undone, which takes long for a large one.
    ended = CAN_BE_UNDONE - {PurgeState.PAUSED}
    since = {
        one.purge: one.purge.quarantined_at
        for one in listed
        if one.purge.state in ended and one.purge.quarantined_at is not None
    }
    now, days = timezone.now(), dt.timedelta(days=settings.QUARANTINE_DAYS)
    held = times_held(since) if since and Hold.objects.exists() else {}
    periods = {
        purge.pk: UndoPeriod(time + days + held.get(purge.pk, dt.timedelta()), time + days)
        for purge, time in since.items()
    }
    until = {purge_id: period.shown_until(now) for purge_id, period in periods.items()}
    still = {purge_id: time for purge_id, time in until.items() if time is not None and now < time}
    return [replace(one, undo_until=still.get(one.purge.pk)) for one in listed]
