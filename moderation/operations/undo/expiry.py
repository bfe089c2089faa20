"""Expiry of undos: after 30 days a purge can no longer be undone.

Its copies expire a day later (quarantine rows have a time to live). The messages stay deleted by the purge. A purge
that is being undone is skipped until that is done.

While a hold covers some of a purge's messages, its undo period is suspended: each night the held copies that would
expire within half the period are renewed. Copies that no hold covers expire as usual.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from django.conf import settings
from django.db.models import Case, Q, When

from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.channel_lock import lock_channel, release_channel
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.coordination.timestamps import issue_stamp
from chatstore.operations.jobs.runs import Claim
from moderation.domain.holds import HoldCoverage
from moderation.domain.states import EXPIRES_FROM, PurgeState
from moderation.models import Purge, Step
from moderation.operations.access.audit import record_action
from moderation.operations.holds import coverage_of, holds_covering, holds_in_force_since
from moderation.operations.steps.claiming import brief_transaction, lock_purge
from moderation.operations.steps.deleted_ids import deleted_by_step
from moderation.operations.steps.shared_copies import renew_copies
from moderation.operations.undo.requests import undo_until

MAX_PURGES_PER_RUN = 10_000

CHANNEL_LEASE_SECONDS = 300.0
"""Lease of the channel lock while the copies of one bucket are renewed."""


def close_expired(claim: Claim) -> Mapping[str, int]:
    """Close every purge whose undo period has passed; return counts by name. Idempotent."""
    renewed = renew_held()
    due = list_expired()
    closed = 0
    for number, purge_id in enumerate(due):
        claim.report_progress(done=number, total=len(due), what=_("purges"))
        closed += close_purge(purge_id)
    return {"closed": closed, "copies renewed": renewed}


def renew_held() -> int:
    """Renew the held copies for as long as they can be restored; return the number of messages. Idempotent.

    A channel that another job has locked is skipped until the next night. Raises `StoreUnavailable`, `WriteRefused`.
    """
    now = postgres_now()
    oldest = now - dt.timedelta(days=settings.QUARANTINE_DAYS)
    if not holds_in_force_since(oldest).exists():
        return 0
    open_purges = Purge.objects.filter(state__in=EXPIRES_FROM, is_rewrite=False).order_by("id")
    return sum(_renew_purge(purge, now) for purge in open_purges.iterator())


def _renew_purge(purge: Purge, now: dt.datetime) -> int:
    until = undo_until(purge)
    holds = holds_covering(purge, since=purge.created_at)
    if not holds or until is None or until <= now:
        return 0
    days = dt.timedelta(days=settings.QUARANTINE_DAYS)
    is_held = any(hold.lifted_at is None for hold in holds)
    # A hold may last for years. Once it is lifted, the rest of the undo period is known.
    wanted = now + days / 2 if is_held else until
    # Renewals made before the newest hold did not include the copies that it covers.
    renewed_under_all = Q(renewed_at__gt=max(hold.placed_at for hold in holds))
    steps = purge.steps.counted_deletes().alias(
        kept_at=Case(When(renewed_under_all, then="renewed_at"), default="quarantined_at")
    )
    return sum(
        _renew_step(step, coverage_of(holds, step.channel_id)) for step in steps.filter(kept_at__lt=wanted - days)
    )


def _renew_step(step: Step, coverage: HoldCoverage) -> int:
    job = f"renew:{step.purge_id}"
    if not coverage or not lock_channel(step.channel_id, job=job, lease_seconds=CHANNEL_LEASE_SECONDS):
        return 0
    try:
        attempt = issue_stamp(step.channel_id, step.bucket)
        ids = deleted_by_step(step)
        count = renew_copies(
            step, ids, attempt=attempt, wanted_row=lambda row: coverage.covers(row[MESSAGE_ID], row[AUTHOR_ID])
        )
        if count:
            Step.objects.filter(purge_id=step.purge_id, ordinal=step.ordinal).update(renewed_at=ClockTimestamp())
        return count
    finally:
        release_channel(step.channel_id, job=job)


def list_expired(limit: int = MAX_PURGES_PER_RUN) -> list[int]:
    """Return purges with copies, the first made over `QUARANTINE_DAYS` ago; the oldest copies first."""
    due = Purge.objects.filter(
        state__in=EXPIRES_FROM,
        is_rewrite=False,
        quarantined_at__lt=postgres_now() - dt.timedelta(days=settings.QUARANTINE_DAYS),
    )
    return list(due.order_by("quarantined_at", "id").values_list("id", flat=True)[:limit])


def close_purge(purge_id: int) -> bool:
    """Close a purge and return whether it was due: an undo may have come first."""
    with brief_transaction():
        purge = lock_purge(purge_id)
        until = undo_until(purge)
        if purge.state not in EXPIRES_FROM or until is None or until > postgres_now():
            return False
        Purge.objects.filter(id=purge_id).update(state=PurgeState.UNDO_EXPIRED, wait_reason="", wait_until=None)
        record_action("undo_expired", actor=None, purge=purge, details={"was": purge.state})
    return True
