"""What the scheduler looks for: purges and scans that nobody works on although they could go on."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q

from moderation.domain.states import ACTIVE_PURGES, BETWEEN_STAMPED_AND_COUNTED, FINAL_STEPS, PurgeState
from moderation.models import Purge, Step
from moderation.operations.claims import ClockTimestamp


def due_purges() -> list[int]:
    """Purges that somebody should look at: a step is due, or none is left and it is not finished.

    Not while a worker has a step of it under lease. He takes the others too, and a second one
    beside him would ask the store for twice what one purge may.
    """
    now = ClockTimestamp()
    open_steps = Step.objects.filter(purge_id=OuterRef("id")).exclude(state__in=FINAL_STEPS)
    free = Q(lease_until__isnull=True) | Q(lease_until__lt=now)
    due = Q(due_at__isnull=True) | Q(due_at__lte=now)
    purges = Purge.objects.filter(
        Q(wait_until__isnull=True) | Q(wait_until__lte=now),
        Exists(open_steps.filter(free, due)) | ~Exists(open_steps) | Q(state=PurgeState.CANCELLING),
        ~Exists(open_steps.filter(lease_until__gte=now)),
        # A paused purge has only what was stamped to bring to its end.
        ~Q(state=PurgeState.PAUSED) | Exists(open_steps.filter(free, state__in=BETWEEN_STAMPED_AND_COUNTED)),
        state__in=ACTIVE_PURGES,
    )
    return list(purges.order_by("id").values_list("id", flat=True))


def due_scans() -> list[int]:
    """Scans that nobody has begun, or whose worker has gone."""
    free = Q(scan_lease_until__isnull=True) | Q(scan_lease_until__lt=ClockTimestamp())
    scans = Purge.objects.filter(free, state=PurgeState.SCANNING)
    return list(scans.order_by("id").values_list("id", flat=True))
