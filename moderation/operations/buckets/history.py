"""Purges, undos and rewrites that touched a bucket, and purges as marks on a channel's history."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from django.db.models import Count, Max, Q, Sum
from django.utils.translation import ngettext

from moderation.domain.planner import DeleteStrategy
from moderation.domain.states import StepKind, StepState, UndoStepState
from moderation.models import PurgeDay, Step, UndoStep
from moderation.models.steps import AnyStep
from moderation.operations.access.visibility import Actor, visible_purges
from moderation.operations.selection.summary import ListedPurge, describe_purges
from moderation.presentation.formats import format_count, format_number
from moderation.presentation.history_chart import Mark

MAX_BUCKET_EVENTS = 30
MAX_STEPS = MAX_BUCKET_EVENTS * 2


@dataclass(frozen=True, slots=True)
class BucketEvent:
    """Activity of one job in a bucket. listed: the purge, if the user may see it; None for a rewrite.

    kind: "purge", "undo" or "rewrite". messages: number that it deleted or restored there. as_a_whole: it deleted the
    whole bucket by one delete. at: when its last step there was counted; None: not yet.
    """

    kind: str
    purge_id: int
    listed: ListedPurge | None
    messages: int
    as_a_whole: bool
    is_done: bool
    at: dt.datetime | None


def bucket_events(user: Actor, channel_id: int, bucket: int) -> list[BucketEvent]:
    """Return the activity of confirmed purges, their undos and rewrites in a bucket, latest first."""
    here = Q(channel_id=channel_id, bucket=bucket, purge__confirmed_at__isnull=False)
    steps = Step.objects.filter(here).only("purge_id", "ordinal", "kind", "state", "strategy", "deleted", "counted_at")
    undo_steps = UndoStep.objects.filter(here).only("purge_id", "ordinal", "undo_id", "state", "restored", "counted_at")
    grouped: dict[tuple[int, str], list[AnyStep]] = {}
    latest: Iterable[AnyStep] = chain(
        steps.order_by("-purge_id", "ordinal")[:MAX_STEPS], undo_steps.order_by("-undo_id", "ordinal")[:MAX_STEPS]
    )
    for step in latest:
        grouped.setdefault((step.purge_id, _kind_of(step)), []).append(step)
    visible = visible_purges(user).filter(pk__in={purge_id for purge_id, _ in grouped}).defer("manifest_hash")
    listed = {one.purge.pk: one for one in describe_purges(user, list(visible))}
    events = [_summarize(kind, same, listed.get(purge_id)) for (purge_id, kind), same in grouped.items()]
    events.sort(key=lambda event: (event.at is None, event.at or dt.datetime.min.replace(tzinfo=dt.UTC)), reverse=True)
    return events[:MAX_BUCKET_EVENTS]


def _kind_of(step: AnyStep) -> str:
    if isinstance(step, UndoStep):
        return "undo"
    return "rewrite" if step.kind == StepKind.REWRITE else "purge"


def _summarize(kind: str, steps: Sequence[AnyStep], listed: ListedPurge | None) -> BucketEvent:
    counted = [step.counted_at for step in steps if step.counted_at is not None]
    return BucketEvent(
        kind=kind,
        purge_id=steps[0].purge_id,
        listed=listed,
        messages=sum(step.restored if isinstance(step, UndoStep) else step.deleted for step in steps),
        as_a_whole=all(isinstance(step, Step) and step.strategy == DeleteStrategy.DROP for step in steps),
        is_done=all(step.state in (StepState.COUNTED, UndoStepState.COUNTED) for step in steps),
        at=max(counted, default=None),
    )


def purge_marks(channel_id: int, *, since: dt.datetime) -> list[Mark]:
    """Return the purges that deleted messages of a channel since then, as marks on its history.

    Each mark is at the time when the purge's last step in the channel was counted.
    """
    steps = Step.objects.counted_deletes().filter(counted_at__gte=since, deleted__gt=0)
    found = steps.filter(channel_id=channel_id).order_by().values("purge_id")
    rows = found.annotate(at=Max("counted_at"), number=Sum("deleted")).order_by("at")
    return [Mark("purge", row["at"], _describe_purge(row["purge_id"], row["number"])) for row in rows]


def purge_days(*, since: dt.datetime) -> list[Mark]:
    """Return what purges deleted in all channels since then, one mark per day."""
    days = PurgeDay.objects.filter(day__gte=since.astimezone(dt.UTC).date()).order_by("day").values("day")
    rows = days.annotate(at=Max("last_at"), number=Sum("deleted"), purges=Count("purge_id"))
    return [Mark("purge", row["at"], _describe_purges(row["purges"], row["number"])) for row in rows]


def _describe_purge(purge_id: int, number: int) -> str:
    text = ngettext("purge %(id)s deleted %(count)s message", "purge %(id)s deleted %(count)s messages", number)
    return text % {"id": purge_id, "count": format_number(number)}


def _describe_purges(purges: int, number: int) -> str:
    text = ngettext("%(count)s purge deleted %(messages)s", "%(count)s purges deleted %(messages)s", purges)
    return text % {"count": format_number(purges), "messages": format_count(number, "message")}
