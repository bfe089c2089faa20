"""What may follow a run that has failed: the same again, or first the repair that its error asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.runs import RunState
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.bucket_jobs.compaction import Remedy, find_obstacle
from chatstore.operations.monitoring.console import ListedRun


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to offer after a run. reason: why it may, or may not, run again now; "" if its error says so already."""

    may_repeat: bool = True
    needs_repair: bool = False
    reason: str = ""


def next_steps(runs: Sequence[ListedRun]) -> list[NextStep]:
    """Return what to offer after each of the runs. A run whose preconditions cannot be read may run again."""
    try:
        return [_next_step(entry) for entry in runs]
    except StoreUnavailable:
        return [NextStep() for _entry in runs]


def _next_step(entry: ListedRun) -> NextStep:
    run, subject = entry.run, entry.subject
    if run.job != "compact" or run.state != RunState.FAILED or subject is None or subject.channel is None:
        return NextStep()
    obstacle = find_obstacle(subject.channel_id, subject.bucket)
    if obstacle is None:
        return NextStep(reason=_("A repair now covers the last delete here, so the bucket can be compacted."))
    is_known = obstacle.reason == run.error
    reason = "" if is_known else _("It cannot be compacted yet. %(reason)s", reason=obstacle.reason)
    return NextStep(may_repeat=False, needs_repair=obstacle.remedy is Remedy.REPAIR, reason=reason)
