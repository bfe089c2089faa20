"""Scheduling: purges and scans that could continue but that no worker processes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.conf import settings
from django.db.models import Count, Exists, F, IntegerField, Max, OuterRef, Q, Subquery
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Coalesce, Greatest

from chatstore.models import ChannelLock
from chatstore.models.functions import ClockTimestamp
from moderation.domain.states import ACTIVE_PURGES, PurgeState
from moderation.models import Purge, Step
from moderation.models.steps import DUE, FREE, StepQuerySet, UndoStepQuerySet
from moderation.operations.steps.open_steps import STEP_MODELS, STEP_ORDER, has_open_step

MAX_LISTED_STEPS = 1_000
"""With fewer steps, the channels of a purge are named in a query, which reads each of them from an index."""


def due_purges() -> list[int]:
    """Return purges that need a worker: a step is due, or none is left and the purge is not finished.

    Excludes purges that have the maximum number of workers, counted by leases on their steps.
    """
    now = ClockTimestamp()
    stamped = Step.objects.filter(purge_id=OuterRef("id")).partly_applied()
    purges = (
        Purge.objects.active()
        .alias(workers=_workers_on("id"))
        .filter(
            Q(wait_until__isnull=True) | Q(wait_until__lte=now),
            has_open_step(FREE, DUE) | Q(workers=0) & (~has_open_step() | Q(state=PurgeState.CANCELLING)),
            # A paused purge only completes its stamped steps.
            ~Q(state=PurgeState.PAUSED) | Exists(stamped.free()),
            workers__lt=settings.PURGE_WORKERS,
        )
    )
    return list(purges.order_by("id").values_list("id", flat=True))


def reserve_wakeups(purge_id: int) -> int:
    """Return the number of workers to enqueue for a purge, and reserve them; 0 while a reservation exists.

    Otherwise a purge that waits while all workers are busy would be enqueued again at every poll.
    """
    expires_at = ClockTimestamp() + dt.timedelta(seconds=settings.WAKEUP_EXPIRES_SECONDS)
    not_notified = Q(wakeup_expires_at__isnull=True) | Q(wakeup_expires_at__lt=ClockTimestamp())
    return (
        workers_needed(purge_id)
        if Purge.objects.filter(not_notified, id=purge_id).schedule(wakeup_expires_at=expires_at)
        else 0
    )


def clear_wakeup(purge_id: int) -> None:
    """Clear the reservation: no worker could be enqueued."""
    Purge.objects.filter(id=purge_id).schedule(wakeup_expires_at=None)


def workers_needed(purge_id: int) -> int:
    """Return how many more workers a purge could use now; at least one, to update its state."""
    workers: int = Purge.objects.annotate(workers=_workers_on("id")).values_list("workers", flat=True).get(id=purge_id)
    # In the order of the index: without one, Postgres may read all steps that were counted before.
    free = (model.objects.open().free().filter(purge_id=purge_id).order_by(*STEP_ORDER) for model in STEP_MODELS)
    steps = sum(steps[: settings.PURGE_WORKERS].count() for steps in free)
    return max(1, min(settings.PURGE_WORKERS - workers, steps))


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
    """Return scans that no worker has started, or whose worker is gone."""
    return list(Purge.objects.scans_due().order_by("id").values_list("id", flat=True))
