"""What the scheduler looks for: purges and scans that nobody works on although they could go on."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.db.models import Count, Exists, F, IntegerField, Max, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Greatest

from chatstore.models import ChannelLock
from chatstore.models.functions import ClockTimestamp
from moderation.domain.states import ACTIVE_PURGES, BETWEEN_STAMPED_AND_COUNTED, PurgeState
from moderation.models import Purge, Step


def due_purges() -> list[int]:
    """Purges that somebody should look at: a step is due, or none is left and it is not finished.

    Not while as many workers have steps of it under lease as one purge may have.
    """
    now = ClockTimestamp()
    open_steps = Step.objects.filter(purge_id=OuterRef("id")).open()
    purges = (
        Purge.objects.active()
        .alias(workers=_workers_on("id"))
        .filter(
            Q(wait_until__isnull=True) | Q(wait_until__lte=now),
            Exists(open_steps.free().due()) | Q(workers=0) & (~Exists(open_steps) | Q(state=PurgeState.CANCELLING)),
            # A paused purge has only what was stamped to bring to its end.
            ~Q(state=PurgeState.PAUSED) | Exists(open_steps.free().filter(state__in=BETWEEN_STAMPED_AND_COUNTED)),
            workers__lt=settings.PURGE_WORKERS,
        )
    )
    return list(purges.order_by("id").values_list("id", flat=True))


def take_bells(purge_id: int) -> int:
    """How many workers to call to a purge: none where some were called and none has come yet.

    Without that, a purge that waits while all workers are busy would be enqueued anew at every look.
    """
    lapses_at = ClockTimestamp() + dt.timedelta(seconds=settings.BELL_SECONDS)
    silent = Q(rung_until__isnull=True) | Q(rung_until__lt=ClockTimestamp())
    return workers_wanted(purge_id) if Purge.objects.filter(silent, id=purge_id).update(rung_until=lapses_at) else 0


def note_heard(purge_id: int) -> None:
    """A worker has come, or none could be called: the next bell may ring."""
    Purge.objects.filter(id=purge_id, rung_until__isnull=False).update(rung_until=None)


def workers_wanted(purge_id: int) -> int:
    """How many more workers a purge could use now: one at least, since somebody must look at it."""
    free = Step.objects.free().filter(purge_id=purge_id)
    found: int = Purge.objects.annotate(workers=_workers_on("id")).values_list("workers", flat=True).get(id=purge_id)
    steps = free.open()[: settings.PURGE_WORKERS].count()
    return max(1, min(settings.PURGE_WORKERS - found, steps))


def _workers_on(purge: str) -> Coalesce:
    """How many workers have steps of the purge under lease."""
    leased = Step.objects.leased().filter(purge_id=OuterRef(purge))
    counted = leased.order_by().values("purge_id").annotate(workers=Count("token", distinct=True)).values("workers")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def next_in_line(purge_id: int) -> list[int]:
    """Who may go on now that a purge was worked on: for each of its channels that nobody holds, the
    purge that was asked for first of those with something to do there; rewrites come last."""
    held = ChannelLock.objects.exclude(lease_until__lt=ClockTimestamp()).values("channel_id")
    channels = Step.objects.filter(purge_id=purge_id).exclude(channel_id__in=held).values("channel_id")
    return _first_in(Q(channel_id__in=channels), behind=purge_id)


def next_in_channel(channel_id: int, *, behind: int) -> list[int]:
    """The same of one channel, which the purge `behind` has just given back."""
    return _first_in(Q(channel_id=channel_id), behind=behind)


def _first_in(channels: Q, *, behind: int) -> list[int]:
    waiting = (
        Step.objects.open()
        .free()
        .due()
        .filter(channels, purge__state__in=ACTIVE_PURGES - {PurgeState.PAUSED})
        .exclude(purge_id=behind)
        .values("channel_id", "purge_id")
        .annotate(asked_at=Greatest(F("purge__confirmed_at"), Max("purge__undos__asked_at")))
        .order_by("purge__is_rewrite", "asked_at")
    )
    first: dict[int, int] = {}
    for row in waiting:
        first.setdefault(row["channel_id"], row["purge_id"])
    return list(dict.fromkeys(first.values()))


def due_scans() -> list[int]:
    """Scans that nobody has begun, or whose worker has gone."""
    return list(Purge.objects.scans_due().order_by("id").values_list("id", flat=True))
