"""Scheduling: purges and scans that could continue but that no worker processes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.conf import settings
from django.db.models import Count, Exists, F, IntegerField, Max, OuterRef, Q, Subquery, TextField, Value
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Cast, Coalesce, Concat, Greatest

from chatstore.models import ChannelLock
from chatstore.models.functions import ClockTimestamp
from moderation.domain.states import ACTIVE_PURGES, PurgeState
from moderation.models import Purge, ScanPart, Step
from moderation.models.purges import PurgeQuerySet
from moderation.models.steps import DUE, FREE, LEASED, StepQuerySet, UndoStepQuerySet
from moderation.operations.steps.claiming import WORKING_STATES, is_locked_by_others
from moderation.operations.steps.open_steps import HAS_STEPS_TO_OPEN, STEP_MODELS, has_open_step

MAX_LISTED_STEPS = 1_000
"""With fewer steps, the channels of a purge are named in a query, which reads each of them from an index."""


def due_purges() -> list[int]:
    """Return purges that need a worker: a step is due, or none is left and the purge is not finished.

    Excludes purges that a worker processes, recognized by leases on their steps: idle workers join those.
    """
    stamped = Step.objects.filter(purge_id=OuterRef("id")).partly_applied()
    is_due = (
        (Q(wait_until__isnull=True) | Q(wait_until__lte=ClockTimestamp()))
        & (has_open_step(FREE, DUE) | ~has_open_step() | HAS_STEPS_TO_OPEN | Q(state=PurgeState.CANCELLING))
        # A paused purge only completes its stamped steps.
        & (~Q(state=PurgeState.PAUSED) | Exists(stamped.free()))
        # Idle workers join only purges in these states.
        & (~Q(state__in=WORKING_STATES) | ~has_open_step(LEASED))
    )
    purges = Purge.objects.active().filter(is_due | _is_left_behind())
    return list(purges.order_by("id").values_list("id", flat=True))


def _is_left_behind() -> Q:
    """Return the condition for paused purges whose worker was killed before it unlocked their channels, or ended them.

    Other purges wait for the channels, and the paused one may stay so for long.
    """
    locks = ChannelLock.objects.filter(job=Concat(Value("purge:"), Cast(OuterRef("id"), TextField())))
    has_ended = ~has_open_step() & Q(reopened_to__isnull=True)
    return Q(state=PurgeState.PAUSED) & ~has_open_step(LEASED) & (Exists(locks) | has_ended)


def has_worker(purge_id: int) -> bool:
    """Return whether a worker has leases on steps of the purge."""
    return Purge.objects.filter(has_open_step(LEASED), id=purge_id).exists()


def joinable_purges() -> PurgeQuerySet:
    """Return running purges of which a further worker could claim a step."""
    joinable = Purge.objects.filter(has_open_step(FREE, DUE, ~Q(is_locked_by_others())), state__in=WORKING_STATES)
    if not settings.PURGE_WORKERS:
        return joinable
    return joinable.alias(workers=_workers_on("id")).filter(workers__lt=settings.PURGE_WORKERS)


def can_be_joined(purge_id: int) -> bool:
    """Return whether a further worker could claim a step of the purge."""
    return joinable_purges().filter(id=purge_id).exists()


def reserve_wakeup(purge_id: int) -> bool:
    """Return whether to enqueue a worker for a purge, and reserve it; False while a reservation exists.

    Otherwise a purge that waits while all workers are busy would be enqueued again at every poll.
    """
    expires_at = ClockTimestamp() + dt.timedelta(seconds=settings.WAKEUP_EXPIRES_SECONDS)
    not_notified = Q(wakeup_expires_at__isnull=True) | Q(wakeup_expires_at__lt=ClockTimestamp())
    return Purge.objects.filter(not_notified, id=purge_id).schedule(wakeup_expires_at=expires_at) == 1


def clear_wakeup(purge_id: int) -> None:
    """Clear the reservation: no worker could be enqueued."""
    Purge.objects.filter(id=purge_id).schedule(wakeup_expires_at=None)


def _workers_on(purge: str) -> CombinedExpression:
    """Return an expression for the number of workers that have leases on steps of the purge."""
    of_purge, of_undo = (
        _count_workers(model.objects.leased().filter(purge_id=OuterRef(purge))) for model in STEP_MODELS
    )
    return of_purge + of_undo


def _count_workers(leased: StepQuerySet | UndoStepQuerySet) -> Coalesce:
    counted = leased.order_by().values("purge_id").annotate(workers=Count("token", distinct=True)).values("workers")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def unblocked_purges(purge_id: int) -> list[int]:
    """Return the purges that can continue after a worker has processed a purge.

    For each of its channels that is not locked, that is the earliest requested purge with due steps there. Rewrites
    come last.
    """
    # The steps of an undo are in channels of the purge's own steps.
    steps = Step.objects.filter(purge_id=purge_id).order_by()
    locks = ChannelLock.objects.exclude(lease_until__lt=ClockTimestamp())
    # A probe of the locks for each step; in the order of the primary key, or Postgres may read steps of all purges.
    unlocked = steps.filter(~Exists(locks.filter(channel_id=OuterRef("channel_id"))))
    some = list(unlocked.order_by("ordinal").values_list("channel_id", flat=True)[: MAX_LISTED_STEPS + 1])
    if len(some) <= MAX_LISTED_STEPS:
        return waiting_in_channels(list(set(some)), excluding=purge_id)
    # All locks are read once.
    channels = steps.exclude(channel_id__in=locks.values("channel_id")).values("channel_id")
    return _longest_waiting(Q(channel_id__in=channels), excluding=purge_id)


def waiting_in_channels(channel_ids: Sequence[int], *, excluding: int) -> list[int]:
    """Return the same for some channels, which the purge `excluding` has just released."""
    return _longest_waiting(Q(channel_id__in=channel_ids), excluding=excluding)


def _longest_waiting(channels: Q, *, excluding: int) -> list[int]:
    of_purges, of_undos = (
        model.objects.open()
        .free()
        .due()
        .filter(channels, purge__state__in=ACTIVE_PURGES - {PurgeState.PAUSED})
        .exclude(purge_id=excluding)
        .order_by()
        .values("channel_id", "purge_id")
        .annotate(
            is_rewrite=F("purge__is_rewrite"),
            requested_at=Greatest(F("purge__confirmed_at"), Max("purge__undos__requested_at")),
        )
        for model in STEP_MODELS
    )
    next_purge: dict[int, int] = {}
    for row in of_purges.union(of_undos).order_by("is_rewrite", "requested_at"):
        next_purge.setdefault(row["channel_id"], row["purge_id"])
    return list(dict.fromkeys(next_purge.values()))


def due_scans() -> list[int]:
    """Return scans that no worker processes: none has started, or all are gone. Idle workers join the others."""
    return list(_scans_due().order_by("id").values_list("id", flat=True))


def is_scan_due(purge_id: int) -> bool:
    """Return whether the purge is still to be scanned and no worker does."""
    return _scans_due().filter(id=purge_id).exists()


def _scans_due() -> PurgeQuerySet:
    free = Q(scan_lease_until__isnull=True) | Q(scan_lease_until__lt=ClockTimestamp())
    parts = ScanPart.objects.leased().filter(purge_id=OuterRef("id"))
    return Purge.objects.filter(free, ~Exists(parts), state=PurgeState.SCANNING)


def joinable_scans() -> PurgeQuerySet:
    """Return scans of which a further worker could claim a part."""
    parts = ScanPart.objects.free().filter(purge_id=OuterRef("id"))
    return Purge.objects.filter(Exists(parts), state=PurgeState.SCANNING)


def can_scan_be_joined(purge_id: int) -> bool:
    """Return whether a further worker could claim a part of the scan."""
    return joinable_scans().filter(id=purge_id).exists()
