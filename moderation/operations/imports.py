"""What an import and purges have to do with each other: the ids that it may not bring back, or did."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import QuerySet

from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.states import StepKind, StepState
from moderation.models import Step
from moderation.operations.audit import record_act
from moderation.operations.claims import brief_transaction
from moderation.operations.standing import standing_ids


class StandingPurges:
    """For which ids a purge stands, asked bucket by bucket while an import holds the channel.

    The hold keeps every step of the channel where it is, so what was read stays true: the
    buckets with steps are asked for once a channel, the ids of the last bucket are kept.
    """

    def __init__(self) -> None:
        self._channel_id: int | None = None
        self._buckets: set[int] = set()
        self._last: tuple[int, Collection[int]] | None = None

    def __call__(self, channel_id: int, bucket: int) -> Collection[int]:
        if channel_id != self._channel_id:
            self._channel_id, self._last = channel_id, None
            steps = Step.objects.filter(channel_id=channel_id, state=StepState.COUNTED)
            self._buckets = set(steps.values_list("bucket", flat=True).distinct())
        if bucket not in self._buckets:
            return ()
        if self._last is None or self._last[0] != bucket:
            self._last = bucket, standing_ids(channel_id, bucket)
        return self._last[1]


def put_back(channel_id: int, bucket: int, ids: Iterable[int]) -> None:
    """Note that an import brought ids back: no purge of the bucket stands for them any more.

    Called after they were written, by an import that holds the channel. A run that dies in
    between is repeated, and notes them then. Done twice it changes nothing.
    """
    back = set(ids)
    with brief_transaction():
        for step in _removing_steps(channel_id, bucket).select_related("purge").select_for_update(of=("self",)):
            undone = set(unpack_ids(step.undone_ids))
            mine = (back & set(unpack_ids(step.ids))) - undone
            if mine:
                step.undone_ids = pack_ids(sorted(undone | mine))
                step.save(update_fields=["undone_ids"])
                record_act(
                    "put_back_by_import",
                    actor=None,
                    purge=step.purge,
                    channel_id=channel_id,
                    details={"bucket": bucket, "ids": len(mine)},
                )


def _removing_steps(channel_id: int, bucket: int) -> QuerySet[Step]:
    return Step.objects.filter(
        channel_id=channel_id,
        bucket=bucket,
        state=StepState.COUNTED,
        kind__in=(StepKind.ROWS, StepKind.SPANS, StepKind.LATER),
    )
