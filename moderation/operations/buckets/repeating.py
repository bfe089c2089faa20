"""What may follow a run that has failed: the same again, or first the repair that its error asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatstore.domain.buckets import BucketKey
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.runs import RunState
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.bucket_jobs.compaction import Obstacle, Remedy, find_obstacles
from chatstore.operations.monitoring.console import ListedRun


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to offer after a run. reason: why it may, or may not, run again now; "" if its error says so already."""

    may_repeat: bool = True
    needs_repair: bool = False
    reason: str = ""

    @property
    def is_past_error(self) -> bool:
        """Whether what the run failed of is known not to hold any more."""
        return self.may_repeat and bool(self.reason)


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run of a channel or bucket. is_past_error: it failed, and that no longer matters. reason: why, or ""."""

    entry: ListedRun
    is_past_error: bool = False
    reason: str = ""


def next_steps(runs: Sequence[ListedRun]) -> list[NextStep]:
    """Return what to offer after each of the runs. A run whose preconditions cannot be read may run again."""
    keys = [_failed_compaction(entry) for entry in runs]
    wanted = {key for key in keys if key is not None}
    try:
        obstacles = find_obstacles(wanted) if wanted else {}
    except StoreUnavailable:
        return [NextStep() for _entry in runs]
    return [
        NextStep() if key is None else _after_compaction(entry, obstacles[key])
        for entry, key in zip(runs, keys, strict=True)
    ]


def mark_past_errors(runs: Sequence[ListedRun]) -> list[ShownRun]:
    """Mark the failures that a later run of the same job followed, or whose preconditions are now met.

    runs: of one channel or bucket. Maintenance leaves out the former, and marks the latter too.
    """
    followed = {entry.run.pk for entry in runs if any(_has_followed(later, entry) for later in runs)}
    steps = iter(next_steps([entry for entry in runs if entry.run.pk not in followed]))
    shown = []
    for entry in runs:
        if entry.run.pk in followed:
            shown.append(ShownRun(entry, is_past_error=True))
        else:
            step = next(steps)
            shown.append(ShownRun(entry, step.is_past_error, step.reason if step.is_past_error else ""))
    return shown


def _has_followed(later: ListedRun, failed: ListedRun) -> bool:
    run, before = later.run, failed.run
    if before.state != RunState.FAILED or run.job != before.job or run.state not in (RunState.DONE, RunState.FAILED):
        return False
    return run.ended_at is not None and before.ended_at is not None and run.ended_at > before.ended_at


def _failed_compaction(entry: ListedRun) -> BucketKey | None:
    """Return the bucket that a run could not compact; None for another run."""
    run, subject = entry.run, entry.subject
    if run.job != "compact" or run.state != RunState.FAILED or subject is None or subject.channel is None:
        return None
    return subject.channel_id, subject.bucket


def _after_compaction(entry: ListedRun, obstacle: Obstacle | None) -> NextStep:
    if obstacle is None:
        return NextStep(reason=_("A repair now covers the last delete here, so the bucket can be compacted."))
    is_known = obstacle.reason == entry.run.error
    reason = "" if is_known else _("It cannot be compacted yet. %(reason)s", reason=obstacle.reason)
    return NextStep(may_repeat=False, needs_repair=obstacle.remedy is Remedy.REPAIR, reason=reason)
