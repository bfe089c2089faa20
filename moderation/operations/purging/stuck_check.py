"""Monitoring check of moderation: purges that make no progress."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

from django.db.models import Count, F, Q, Sum

from chatstore.domain.runs import Severity
from chatstore.domain.texts import Duration, Param, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.findings.records import Problem, sync_findings
from moderation.domain.states import PurgeState
from moderation.models import Purge, PurgePeriod, Step, Undo
from moderation.operations.access.visibility import name_of
from moderation.operations.purging.wait_reasons import WAITING_STATES, wait_of
from moderation.operations.steps.open_steps import STEP_MODELS, has_open_step
from moderation.store.progress_tracker import record_positions

STUCK_PURGE = "stuck purge"

STUCK_AFTER = dt.timedelta(minutes=30)

RETRY = dt.timedelta(minutes=2)
"""A requeued step is retried within a minute. One that waits longer is deferred until its messages are over an hour
old.
"""


def check_stuck_purges(now: dt.datetime) -> None:
    """Open findings for stuck purges: no step has moved for 30 minutes, one is due, and no other job blocks it."""
    purges = _purges_expected_to_progress(now)
    since = record_positions(_positions_of(purges), now=now)
    stuck = [purge for purge in purges if now - since[purge.pk] >= STUCK_AFTER]
    sync_findings(STUCK_PURGE, {str(purge.pk): _describe_stuck(purge, now - since[purge.pk]) for purge in stuck})


def _purges_expected_to_progress(now: dt.datetime) -> list[Purge]:
    is_due = has_open_step(Q(due_at=None) | Q(due_at__lte=now + RETRY))
    purges = Purge.objects.filter(is_due | ~has_open_step(), state__in=WAITING_STATES).select_related("moderator")
    return [purge for purge in purges.order_by("id") if not _is_blocked(purge)]


def _is_blocked(purge: Purge) -> bool:
    wait = wait_of(None, purge)
    return wait is not None and wait.is_behind_job


def _positions_of(purges: Sequence[Purge]) -> dict[int, str]:
    """Return the progress of each purge: the messages with an outcome, and the states of partly applied steps.

    Before *stamped* a step may start over, so its state is no progress.
    """
    reached: dict[int, list[str]] = {}
    ids = [purge.pk for purge in purges]
    for purge_id, count in _outcomes(ids):
        reached.setdefault(purge_id, []).append(f"messages:{count}")
    for model in STEP_MODELS:
        steps = model.objects.filter(purge_id__in=ids).order_by()
        applied = steps.partly_applied().values("purge_id", "state").annotate(count=Count("ordinal"))
        for row in applied.order_by("purge_id", "state"):
            reached.setdefault(row["purge_id"], []).append(f"{row['state']}:{row['count']}")
    return {purge.pk: ",".join([_stage_of(purge), *reached.get(purge.pk, [])]) for purge in purges}


def _outcomes(purge_ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (purge id, number of messages with an outcome) of purges and of their undos."""
    periods = PurgePeriod.objects.filter(purge_id__in=purge_ids).values_list("purge_id")
    yield from periods.annotate(count=Sum(F("deleted") + F("already_gone"))).order_by("purge_id")
    for name in ("held", "failed"):
        ended = Step.objects.filter(purge_id__in=purge_ids, **{f"{name}__gt": 0}).values_list("purge_id")
        yield from ended.annotate(count=Sum(name)).order_by("purge_id")
    undos = Undo.objects.filter(purge_id__in=purge_ids, finished_at=None)
    yield from undos.order_by("pk").values_list("purge_id", "requested")


def _stage_of(purge: Purge) -> str:
    if purge.state == PurgeState.SCANNING:
        return f"scanning:{purge.scanned}"
    # Alternating between running and waiting is no progress either.
    return "undoing" if purge.state == PurgeState.UNDOING else "deleting"


def _describe_stuck(purge: Purge, idle_for: dt.timedelta) -> Problem:
    wait = wait_of(None, purge)
    minutes = int(idle_for.total_seconds() // 60)
    params: dict[str, Param] = {"purge": str(purge.pk), "moderator": name_of(purge.moderator)}
    if purge.is_rewrite:
        summary = ngettext_lazy(
            "The rewrite of a bucket has made no progress for %(count)s minute.",
            "The rewrite of a bucket has made no progress for %(count)s minutes.",
            minutes,
        )
    else:
        summary = ngettext_lazy(
            "Purge %(purge)s by %(moderator)s has made no progress for %(count)s minute.",
            "Purge %(purge)s by %(moderator)s has made no progress for %(count)s minutes.",
            minutes,
            **params,
        )
    if wait is not None and wait.reason:
        summary = _("%(summary)s %(reason)s.", summary=summary, reason=wait.reason)
    if wait is not None and wait.idle_seconds is not None:
        idle = Duration(wait.idle_seconds)
        summary = _("%(summary)s No worker has processed it for %(time)s.", summary=summary, time=idle)
    details = {"purge": purge.pk, "is_rewrite": purge.is_rewrite, "channels": purge.selection.get("channels", [])}
    return Problem(Severity.WARNING, summary, details)
