"""What of a purge failed: where, which messages, and with which error, so that somebody can see to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moderation.domain.packing import unpack_ids
from moderation.domain.states import StepKind
from moderation.models import Purge

IDS_SHOWN = 10
BUCKETS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Failure:
    """One bucket's failed messages. ids: the first of them, `count` is how many there are.

    of_undo: they did not come back; else they were not removed.
    """

    channel_id: int
    bucket: int
    count: int
    ids: Sequence[int]
    error: str
    of_undo: bool

    @property
    def others(self) -> int:
        """How many are not named."""
        return self.count - len(self.ids)

    def as_line(self) -> str:
        """All of it in one line, for a terminal."""
        ids = ", ".join([*map(str, self.ids), *(["…"] if self.others else [])])
        failed = "not brought back" if self.of_undo else "failed"
        return f"bucket {self.bucket} of channel {self.channel_id}: {self.count:,} {failed}: {self.error} ({ids})"


@dataclass(frozen=True, slots=True)
class Failures:
    """The failed buckets, oldest first, and how many more there are."""

    shown: Sequence[Failure]
    others: int

    def as_lines(self) -> list[str]:
        """A line for each bucket, for a terminal."""
        lines = [one.as_line() for one in self.shown]
        return [*lines, f"and {self.others:,} more buckets"] if self.others else lines


def failures_of(purge: Purge) -> Failures:
    """The buckets in which something failed and was not tried again since."""
    failed = purge.steps.filter(failed__gt=0).order_by("channel_id", "bucket", "ordinal")
    named = ("channel_id", "bucket", "kind", "failed", "failed_ids", "error")
    shown = [
        Failure(channel_id, bucket, count, unpack_ids(ids)[:IDS_SHOWN], error, of_undo=kind == StepKind.UNDO)
        for channel_id, bucket, kind, count, ids, error in failed.values_list(*named)[:BUCKETS_SHOWN]
    ]
    return Failures(shown, max(0, failed.count() - len(shown)) if len(shown) == BUCKETS_SHOWN else 0)
