"""What an import must know of purges: the ids that it may not bring back."""

from __future__ import annotations

from collections.abc import Collection

from moderation.domain.states import StepState
from moderation.models import Step
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
