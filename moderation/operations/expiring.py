"""After 30 days a purge can no longer be taken back: it is said so, and stays said.

What it kept goes by itself a day later (the quarantine's rows have a time to live). The purge
stands for its messages as before. One that is being taken back is left until that is done.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from django.conf import settings
from django.db import models
from django.db.models import Min

from chatstore.models.functions import ClockTimestamp
from chatstore.operations.clock import postgres_now
from chatstore.operations.runs import Claim
from moderation.domain.states import PURGE_MOVES, PurgeState
from moderation.models import Purge
from moderation.operations.audit import record_act
from moderation.operations.claims import brief_transaction, lock_purge
from moderation.operations.undos import undo_until

EXPIRES_FROM = frozenset(state for state, after in PURGE_MOVES.items() if PurgeState.UNDO_EXPIRED in after)

PURGES_A_RUN = 10_000


def close_expired(claim: Claim) -> Mapping[str, int]:
    """Closes every purge whose days are over; how many, by name. Done twice it changes nothing."""
    due = list_expired()
    closed = 0
    for number, purge_id in enumerate(due):
        claim.tell(done=number, total=len(due), what="purges")
        closed += close_purge(purge_id)
    return {"closed": closed}


def list_expired(limit: int = PURGES_A_RUN) -> list[int]:
    """Purges that kept something, the first of it over `QUARANTINE_DAYS` ago; the oldest first."""
    over = ClockTimestamp() - models.Value(
        dt.timedelta(days=settings.QUARANTINE_DAYS), output_field=models.DurationField()
    )
    kept = Purge.objects.filter(state__in=EXPIRES_FROM, is_rewrite=False).alias(first=Min("steps__quarantined_at"))
    return list(kept.filter(first__lt=over).order_by("id").values_list("id", flat=True)[:limit])


def close_purge(purge_id: int) -> bool:
    """Whether it was to be closed: an undo may have come first."""
    with brief_transaction():
        purge = lock_purge(purge_id)
        until = undo_until(purge)
        if purge.state not in EXPIRES_FROM or until is None or until > postgres_now():
            return False
        Purge.objects.filter(id=purge_id).update(state=PurgeState.UNDO_EXPIRED, wait_reason="", wait_until=None)
        record_act("undo_expired", actor=None, purge=purge, details={"was": purge.state})
    return True
