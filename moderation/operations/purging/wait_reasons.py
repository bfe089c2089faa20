"""What a purge waits for, in words: behind whom, for the disk, for its hour, or for a worker that nobody runs.

Each reason is looked at anew when it is shown, so that nothing is named that is over by now.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Max

from chatstore.models import ChannelLock
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.states import PurgeState, StepKind, StepState
from moderation.models import AuditEntry, Purge, Step
from moderation.operations.access.visibility import Actor, name_of, visible_purges
from moderation.operations.selection.summary import sentence_of
from moderation.operations.steps.claiming import job_of

WAITS_IN = frozenset(
    {
        PurgeState.SCANNING,
        PurgeState.QUEUED,
        PurgeState.RUNNING,
        PurgeState.WAITING,
        PurgeState.CANCELLING,
        PurgeState.UNDOING,
    }
)
"""States in which a worker should have a purge in hand, or know why not."""

UNSEEN_AFTER = 2
"""Looks of the scheduler that pass without a worker before the page says so."""

BEHIND = "behind "


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a purge does not go on. words: the reason; empty when it is only that nobody has looked.

    behind: the purge that the words name, where they do.
    until: when it is tried again. unseen_seconds: for how long no worker has looked although it is due.
    """

    words: str = ""
    behind: Purge | None = None
    until: dt.datetime | None = None
    unseen_seconds: float | None = None

    @property
    def sentence(self) -> str:
        """The reason as a sentence: "Waiting behind purge 81 (…)", "Waiting: its hour is not over"."""
        if not self.words:
            return ""
        return f"Waiting{' ' if self.words.startswith((BEHIND, 'for ', 'until ')) else ': '}{self.words}"


def say_behind(job: str) -> str:
    """The job that holds a channel, as what stands before another: "behind purge 81 (everything by …, by Mona)"."""
    words, _ = _describe_job(job)
    return BEHIND + words


def say_wait(wait: Wait | None) -> str:
    """All of it in one line, for a terminal; "" when there is no wait."""
    if wait is None:
        return ""
    unseen = "" if wait.unseen_seconds is None else f"no worker has looked at it for {wait.unseen_seconds:.0f} s"
    return "; ".join(filter(None, (wait.sentence, unseen)))


def wait_of(user: Actor | None, purge: Purge) -> Wait | None:
    """What a purge waits for now; None when it goes on, or has nothing to do.

    Another purge is named only to those who may see it; without a user always.
    """
    if purge.state not in WAITS_IN:
        return None
    now = postgres_now()
    unseen = _unseen_seconds(purge, now)
    job = _job_before(purge)
    if job is not None:
        words, behind = _describe_job(job)
        if behind is not None and user is not None and not visible_purges(user).filter(pk=behind.pk).exists():
            words, behind = "another job", None
        return Wait(BEHIND + words, behind, unseen_seconds=unseen)
    reason = "for a worker: the channel is free again" if purge.wait_reason.startswith(BEHIND) else purge.wait_reason
    if reason:
        return Wait(reason, until=purge.wait_until, unseen_seconds=unseen)
    on_disk_at = _on_disk_at(purge)
    if on_disk_at is not None:
        words = "until what is kept for undo is on the disk of every replica: nothing goes before that"
        return Wait(words, until=on_disk_at, unseen_seconds=unseen)
    return None if unseen is None else Wait(unseen_seconds=unseen)


def _describe_job(job: str) -> tuple[str, Purge | None]:
    """What a job is called after "behind", and the purge that this names."""
    kind, _, name = job.partition(":")
    if kind == "import":
        return "an import into the channel", None
    if kind == "erase":
        return f"the erasing of what purge {name} keeps", None
    purge = Purge.objects.select_related("moderator").filter(id=name).first() if kind == "purge" else None
    if purge is None:
        return f"another job ({job.replace(':', ' ')})", None
    if not purge.is_rewrite:
        undone = "the undo of " if purge.state == PurgeState.UNDOING else ""
        return f"{undone}{_name(purge)}", purge
    left_by = _purge_that_left(purge)
    if left_by is None:
        return "the rewrite of a bucket", None
    return f"the rewrite of a bucket that {_name(left_by)} left over its budget", left_by


def _name(purge: Purge) -> str:
    return f"purge {purge.pk} ({sentence_of(purge)}, by {name_of(purge.moderator)})"


def _purge_that_left(rewrite: Purge) -> Purge | None:
    """The purge whose step left what a rewrite mends: it has the rewrite's ids."""
    step = rewrite.steps.first()
    if step is None:
        return None
    same = Step.objects.filter(channel_id=step.channel_id, bucket=step.bucket, ids=step.ids)
    left = same.exclude(kind=StepKind.REWRITE).select_related("purge__moderator").first()
    return None if left is None else left.purge


def _job_before(purge: Purge) -> str | None:
    """A job that holds a channel of the purge, where others hold each one in which it has something to do now."""
    if purge.steps.leased().open().exists():
        return None
    due = purge.steps.due().open()
    wanted = due.order_by().values("channel_id").distinct()
    locks = ChannelLock.objects.filter(channel_id__in=wanted).exclude(lease_until__lt=ClockTimestamp())
    jobs = list(locks.exclude(job=job_of(purge.pk)).order_by("since").values_list("job", flat=True))
    return jobs[0] if jobs and len(jobs) == wanted.count() else None


def _on_disk_at(purge: Purge) -> dt.datetime | None:
    """When the first of the steps that wait for the disk goes on, where all that a worker has in hand do."""
    in_hand = purge.steps.leased().open()
    kept = dict(in_hand.values_list("ordinal", "quarantined_at"))
    waiting = in_hand.filter(state=StepState.QUARANTINED).exclude(kind=StepKind.UNDO).count()
    moments = [moment for moment in kept.values() if moment is not None]
    if not moments or waiting < len(kept):
        return None
    period_ms: int = settings.CASSANDRA["commitlog_sync_period_ms"]
    return min(moments) + dt.timedelta(milliseconds=period_ms)


def _unseen_seconds(purge: Purge, now: dt.datetime) -> float | None:
    """Seconds since a worker could have looked at the purge; None when one has lately, or need not yet."""
    leases = purge.steps.open().aggregate(until=Max("lease_until"))
    acted = AuditEntry.objects.filter(purge=purge).aggregate(at=Max("at"))
    moments = (purge.wait_until, purge.scan_lease_until, leases["until"], acted["at"], purge.confirmed_at)
    due_since = max((moment for moment in moments if moment is not None), default=purge.created_at)
    seconds = (now - due_since).total_seconds()
    return seconds if seconds > UNSEEN_AFTER * settings.BEAT_LOOK_SECONDS else None
