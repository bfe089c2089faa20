"""Reasons why a purge waits, as text: another job, its turn, the disk, messages of the last hour, or a missing worker.

Each reason is checked again when it is shown, so that outdated reasons are not displayed.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Max

from chatstore.domain.errors import ChatstoreError
from chatstore.domain.texts import Duration, Param, Text, gettext_noop, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.coordination.channel_lock import lock_owner
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.states import PurgeState, StepKind, StepState
from moderation.models import AuditEntry, Purge, ScanPart, Step
from moderation.operations.access.visibility import Actor, name_of, visible_purges
from moderation.operations.purging.turns import MAX_WAITING, TurnWait, wait_for_turn
from moderation.operations.selection.summary import describe_purges
from moderation.operations.steps.claiming import is_locked_by_others, job_of
from moderation.operations.steps.open_steps import open_steps

WAITING_STATES = frozenset(
    {
        PurgeState.SCANNING,
        PurgeState.QUEUED,
        PurgeState.RUNNING,
        PurgeState.WAITING,
        PurgeState.CANCELLING,
        PurgeState.UNDOING,
    }
)
"""States in which a worker should process a purge or know the reason why not."""

IDLE_AFTER_POLLS = 2
"""Number of polls without a worker after which the page reports it."""

TURN_WAIT_SHOWN_AFTER = dt.timedelta(seconds=2)
"""A purge that leaves its worker to others for a turn is soon back; only a longer wait is shown."""

WAITING_FOR_WORKER = _("Waiting for a worker")


@dataclass(frozen=True, slots=True)
class Wait:
    """Reason why a purge does not progress. reason: "Waiting for …", without a full stop; empty if only a worker is
    missing.

    is_behind_job: another job has locked the channel. blocking_purge: the purge named in the text, if any. until: time
    of the next attempt. idle_seconds: time for which no worker has processed the purge although it is due.
    """

    reason: str = ""
    blocking_purge: Purge | None = None
    until: dt.datetime | None = None
    idle_seconds: float | None = None
    is_behind_job: bool = False


def waiting_for(error: ChatstoreError) -> str:
    """Return the reason to wait that an error is."""
    return _("Waiting: %(error)s", error=error.text)


def describe_blocking_job(job: str) -> str:
    """Describe the job that has locked a channel, for storing: "Waiting behind purge 81"; "" if it is unknown."""
    kind, _separator, name = job.partition(":")
    if kind == "purge":
        return _("Waiting behind purge %(purge)s", purge=name)
    if kind == "erase":
        return _("Waiting behind the permanent deletion of purge %(purge)s", purge=name)
    return _describe_other_job(kind, name)


def format_wait(wait: Wait | None) -> str:
    """Format the wait as one line for a terminal, with the id of the purge it names; "" if there is none."""
    if wait is None:
        return ""
    blocking = "" if wait.blocking_purge is None else f"purge {wait.blocking_purge.pk}"
    idle = "" if wait.idle_seconds is None else f"no worker has processed it for {wait.idle_seconds:.0f} s"
    return "; ".join(filter(None, (wait.reason, blocking, idle)))


def wait_of(user: Actor | None, purge: Purge) -> Wait | None:
    """Return what a purge waits for now; None if it progresses or has nothing to do.

    Other purges are named only to users who may see them; always without a user.
    """
    if purge.state not in WAITING_STATES:
        return None
    now = postgres_now()
    idle = _idle_seconds(purge, now)
    is_scan = purge.state == PurgeState.SCANNING
    # A scan locks no channel and stores no copies: nothing has to be searched among the steps that it has found.
    job = None if is_scan else _blocking_job(purge)
    if job is not None:
        reason, blocking_purge = _describe_job(job, user)
        if (
            blocking_purge is not None
            and user is not None
            and not visible_purges(user).filter(pk=blocking_purge.pk).exists()
        ):
            reason, blocking_purge = _BEHIND_ANOTHER_JOB, None
        return Wait(reason, blocking_purge, idle_seconds=idle, is_behind_job=True)
    stored_reason = purge.wait_reason
    turn = wait_for_turn(purge, now) if stored_reason in ("", WAITING_FOR_WORKER) else None
    if turn is not None and now - turn.since > TURN_WAIT_SHOWN_AFTER and not _has_worker(purge, now):
        return Wait(_describe_turn(turn, now, is_scan=is_scan), idle_seconds=idle)
    if isinstance(stored_reason, Text) and stored_reason.template in _STORED_BEHIND_JOB:
        stored_reason = _("Waiting for a worker; the channel is unlocked")
    if stored_reason:
        return Wait(stored_reason, until=purge.wait_until, idle_seconds=idle)
    on_disk_at = None if is_scan else _on_disk_at(purge)
    if on_disk_at is not None:
        reason = _("Waiting for the undo copy to reach disk on every replica (nothing is deleted before that)")
        return Wait(reason, until=on_disk_at, idle_seconds=idle)
    return None if idle is None else Wait(idle_seconds=idle)


def _has_worker(purge: Purge, now: dt.datetime) -> bool:
    """Return whether a worker processes the purge; another one may be enqueued for it all the same."""
    if purge.state == PurgeState.SCANNING:
        has_lease = purge.scan_lease_until is not None and purge.scan_lease_until > now
        return has_lease or ScanPart.objects.leased().filter(purge=purge).exists()
    return open_steps(purge).leased().exists()


def _describe_turn(turn: TurnWait, now: dt.datetime, *, is_scan: bool) -> Text:
    time = Duration((now - turn.since).total_seconds())
    if turn.others == 0:
        return _("Waiting for a worker for %(time)s", time=time)
    if turn.first is None:
        return _("Waiting for a worker for %(time)s, with more than %(count)s others", time=time, count=MAX_WAITING)
    if turn.first == 0:
        return _("Waiting for a worker for %(time)s; it comes next", time=time)
    if is_scan:
        return ngettext_lazy(
            "Waiting for a worker for %(time)s; %(count)s other preview comes first",
            "Waiting for a worker for %(time)s; %(count)s other previews come first",
            turn.first,
            time=time,
        )
    return ngettext_lazy(
        "Waiting for a worker for %(time)s; %(count)s other purge comes first",
        "Waiting for a worker for %(time)s; %(count)s other purges come first",
        turn.first,
        time=time,
    )


_BEHIND_ANOTHER_JOB = _("Waiting behind another job")

_STORED_BEHIND_JOB = (
    gettext_noop("Waiting behind purge %(purge)s"),
    gettext_noop("Waiting behind the permanent deletion of purge %(purge)s"),
    gettext_noop("Waiting behind an import into the channel"),
    gettext_noop("Waiting behind another job (%(job)s)"),
    _BEHIND_ANOTHER_JOB.template,
)
"""Templates of what `describe_blocking_job` returns."""


def _describe_job(job: str, user: Actor | None) -> tuple[str, Purge | None]:
    """Describe a job that has locked a channel, and return the purge named in the text."""
    kind, _separator, name = job.partition(":")
    is_purge = kind in ("purge", "erase")
    purge = Purge.objects.select_related("moderator").filter(id=name).first() if is_purge else None
    if purge is None:
        return _describe_other_job(kind, name), None
    if kind == "erase":
        params = _name(purge, user)
        return _("Waiting behind the permanent deletion of a purge by %(moderator)s: %(selection)s", **params), purge
    if not purge.is_rewrite:
        params = _name(purge, user)
        if purge.state == PurgeState.UNDOING:
            return _("Waiting behind the undo of a purge by %(moderator)s: %(selection)s", **params), purge
        return _("Waiting behind a purge by %(moderator)s: %(selection)s", **params), purge
    source = _purge_behind_rewrite(purge)
    if source is None:
        return _("Waiting behind the rewrite of a bucket"), None
    text = _("Waiting behind the rewrite after a purge by %(moderator)s: %(selection)s", **_name(source, user))
    return text, source


def _describe_other_job(kind: str, name: str) -> str:
    if kind == "import":
        return _("Waiting behind an import into the channel")
    return _("Waiting behind another job (%(job)s)", job=f"{kind} {name}".strip()) if kind else _BEHIND_ANOTHER_JOB


def _name(purge: Purge, user: Actor | None) -> dict[str, Param]:
    return {"selection": describe_purges(user, [purge])[0].summary, "moderator": name_of(purge.moderator)}


def _purge_behind_rewrite(rewrite: Purge) -> Purge | None:
    """Return the purge that a rewrite follows. One of its steps has the rewrite's ids."""
    step = rewrite.steps.first()
    if step is None:
        return None
    same = Step.objects.filter(channel_id=step.channel_id, bucket=step.bucket, ids=step.ids)
    source_step = same.exclude(kind=StepKind.REWRITE).select_related("purge__moderator").first()
    return None if source_step is None else source_step.purge


def _blocking_job(purge: Purge) -> str | None:
    """Return a job that has locked one of the purge's channels, if all channels with due steps are locked by others."""
    left = open_steps(purge)
    if left.leased().exists():
        return None
    job = job_of(purge.pk)
    due = left.due()
    if due.filter(~is_locked_by_others(job)).exists():
        return None
    first = due.order_by("due_at", "ordinal").values_list("channel_id", flat=True).first()
    return None if first is None else lock_owner(first)


def _on_disk_at(purge: Purge) -> dt.datetime | None:
    """Return when the first step that waits for the disk continues, if all leased steps wait for it."""
    leased = purge.steps.open().leased()
    quarantined_at_by_step = dict(leased.values_list("ordinal", "quarantined_at"))
    waiting = leased.filter(state=StepState.QUARANTINED).count()
    times = [time for time in quarantined_at_by_step.values() if time is not None]
    if not times or waiting < len(quarantined_at_by_step):
        return None
    period_ms: int = settings.CASSANDRA["commitlog_sync_period_ms"]
    return min(times) + dt.timedelta(milliseconds=period_ms)


def _idle_seconds(purge: Purge, now: dt.datetime) -> float | None:
    """Return the seconds since a worker could have processed the purge; None if one did recently or need not yet."""
    claimed = purge.scan_parts if purge.state == PurgeState.SCANNING else open_steps(purge).claimed()
    leases = claimed.aggregate(until=Max("lease_until"))
    last_action = AuditEntry.objects.filter(purge=purge).order_by("-id").values_list("at", flat=True).first()
    times = (purge.wait_until, purge.scan_lease_until, leases["until"], last_action, purge.confirmed_at)
    idle_since = max((time for time in times if time is not None), default=purge.created_at)
    seconds = (now - idle_since).total_seconds()
    return seconds if seconds > IDLE_AFTER_POLLS * settings.BEAT_POLL_SECONDS else None
