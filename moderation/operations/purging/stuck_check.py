"""Monitoring check of moderation: purges that make no progress."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.db.models import Count, Exists, OuterRef, Q

from chatstore.domain.runs import Severity
from chatstore.operations.findings.records import Found, sync_findings
from moderation.domain.states import BEFORE_STAMPED, PurgeState
from moderation.models import Purge, Step
from moderation.operations.access.visibility import name_of
from moderation.operations.purging.wait_reasons import BEHIND, WAITS_IN, say_wait, wait_of
from moderation.store.progress_tracker import note_positions

STUCK_PURGE = "stuck purge"

STUCK_AFTER = dt.timedelta(minutes=30)

RETRY = dt.timedelta(minutes=2)
"""A requeued step is retried within a minute. One that waits longer is deferred until its messages are over an hour
old.
"""


def look_at_purges(now: dt.datetime) -> None:
    """Open findings for stuck purges: no step has moved for 30 minutes, one is due, and no other job blocks it."""
    purges = _purges_that_should_move(now)
    since = note_positions(_positions_of(purges), now=now)
    stuck = [purge for purge in purges if now - since[purge.pk] >= STUCK_AFTER]
    sync_findings(STUCK_PURGE, {str(purge.pk): _say_stuck(purge, now - since[purge.pk]) for purge in stuck})


def _purges_that_should_move(now: dt.datetime) -> list[Purge]:
    open_steps = Step.objects.filter(purge_id=OuterRef("id")).open()
    due = open_steps.filter(Q(due_at=None) | Q(due_at__lte=now + RETRY))
    purges = Purge.objects.filter(Exists(due) | ~Exists(open_steps), state__in=WAITS_IN).select_related("moderator")
    return [purge for purge in purges.order_by("id") if not _is_behind(purge)]


def _is_behind(purge: Purge) -> bool:
    wait = wait_of(None, purge)
    return wait is not None and wait.words.startswith(BEHIND)


def _positions_of(purges: Sequence[Purge]) -> dict[int, str]:
    """Return the progress of each purge. Before *stamped* a step may start over, so its state is no progress."""
    steps = Step.objects.filter(purge_id__in=[purge.pk for purge in purges]).exclude(state__in=BEFORE_STAMPED)
    counts = steps.order_by().values("purge_id", "state").annotate(count=Count("ordinal"))
    reached: dict[int, list[str]] = {}
    for row in counts.order_by("purge_id", "state"):
        reached.setdefault(row["purge_id"], []).append(f"{row['state']}:{row['count']}")
    return {purge.pk: ",".join([_stage_of(purge), *reached.get(purge.pk, [])]) for purge in purges}


def _stage_of(purge: Purge) -> str:
    if purge.state == PurgeState.SCANNING:
        return f"scanning:{purge.scanned}"
    # Alternating between running and waiting is no progress either.
    return "undoing" if purge.state == PurgeState.UNDOING else "removing"


def _say_stuck(purge: Purge, standing: dt.timedelta) -> Found:
    what = "The rewrite of a bucket" if purge.is_rewrite else f"Purge {purge.pk} by {name_of(purge.moderator)}"
    wait = wait_of(None, purge)
    reason = f" ({said})" if (said := say_wait(wait)) else ""
    minutes = int(standing.total_seconds() // 60)
    details = {"purge": purge.pk, "is_rewrite": purge.is_rewrite, "channels": purge.selection.get("channels", [])}
    return Found(Severity.AMBER, f"{what} has made no progress for {minutes} minutes{reason}.", details)
