"""Which due steps a worker processes together: small ones that begin and delete in the same way, or restore."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.db import models
from django.utils import timezone

from chatstore.domain.buckets import BucketKey
from moderation.domain.states import StepKind
from moderation.models import ManifestBucket, Step, UndoStep
from moderation.models.steps import AnyStep, StepQuerySet, UndoStepQuerySet
from moderation.operations.steps.open_steps import STEP_ORDER

MAX_GROUP_STEPS = 128
"""Maximum number of steps that are processed together. With more, a statement of the group is no cheaper per step."""

MAX_GROUPED_MESSAGES = 500
MAX_GROUP_MESSAGES = 5_000
"""Maximum messages of a step that is processed together with others, and of all steps of a group: their rows are in
memory. Of a range step all messages of its bucket count, kept ones too: it is read as a whole.
"""

SINGLE_SECONDS = 30
"""Steps of a group that failed are processed one by one for this long; those that still wait then, as a group again.

Otherwise a node that was briefly down would leave a purge of thousands of small steps to be processed singly.
"""

_KEY_COLUMNS = ("purge_id", "ordinal", "channel_id", "bucket", "state", "due_at")
_NARROW: dict[type[models.Model], tuple[str, ...]] = {
    Step: (*_KEY_COLUMNS, "kind", "count"),
    UndoStep: (*_KEY_COLUMNS, "undo_id"),
}


def next_group(due: StepQuerySet | UndoStepQuerySet, *, limit: int) -> list[AnyStep]:
    """Return the first due step, with further ones that can be processed together with it; empty if none is due.

    Those begin, were not delayed or released to be processed singly just now, have few messages, and all delete by
    row, or by range, or restore. Each is in another bucket. Their ids and copies are not loaded.
    """
    narrow: list[AnyStep] = list(due.order_by(*STEP_ORDER).only(*_NARROW[due.model])[:limit])
    sizes = _grouped_messages(narrow)
    if not narrow or narrow[0].ordinal not in sizes:
        return narrow[:1]
    group: dict[BucketKey, AnyStep] = {}
    messages = 0
    for step in narrow:
        size = sizes.get(step.ordinal, 0)
        if size and (step.channel_id, step.bucket) not in group:
            messages += size
            if messages > MAX_GROUP_MESSAGES:
                break
            group[step.channel_id, step.bucket] = step
    return list(group.values())


def _grouped_messages(steps: Sequence[AnyStep]) -> dict[int, int]:
    """Return the messages of those steps that may be processed together with others, by ordinal."""
    single_from = timezone.now() - dt.timedelta(seconds=SINGLE_SECONDS)
    beginning = [
        step
        for step in steps
        if step.state in step.STATES.before_stamped and (step.due_at is None or step.due_at < single_from)
    ]
    undo_steps = [step for step in beginning if isinstance(step, UndoStep)]
    purge_steps = [step for step in beginning if isinstance(step, Step)]
    own = _messages_to_restore(undo_steps) if undo_steps else _messages_to_read(purge_steps)
    return {ordinal: count for ordinal, count in own.items() if 0 < count <= MAX_GROUPED_MESSAGES}


def _messages_to_restore(steps: Sequence[UndoStep]) -> dict[int, int]:
    """Return the messages that undo steps restore, by ordinal."""
    undone = Step.objects.filter(purge_id=steps[0].purge_id, ordinal__in=[step.ordinal for step in steps])
    return dict(undone.values_list("ordinal", "count"))


def _messages_to_read(steps: Sequence[Step]) -> dict[int, int]:
    """Return the messages that the steps of the first one's kind read, by ordinal; empty if they are processed singly.

    A step that deletes by row reads what it deletes; one that deletes by range reads its bucket.
    """
    alike = [step for step in steps if step.kind == steps[0].kind]
    if not alike or alike[0].kind not in (StepKind.ROWS, StepKind.RANGES):
        return {}
    if alike[0].kind == StepKind.ROWS:
        return {step.ordinal: step.count for step in alike}
    return _messages_of_buckets(alike)


def _messages_of_buckets(steps: Sequence[Step]) -> dict[int, int]:
    """Return the messages of steps' buckets at the scan, kept ones too, by ordinal; without those not counted then."""
    keys = [(step.purge_id, step.channel_id, step.bucket) for step in steps]
    found = ManifestBucket.objects.filter(pk__in=keys).order_by().values_list("channel_id", "bucket", "survivors")
    kept = {(channel_id, bucket): survivors for channel_id, bucket, survivors in found if survivors is not None}
    counted = [(step, (step.channel_id, step.bucket)) for step in steps]
    return {step.ordinal: step.count + kept[key] for step, key in counted if key in kept}
