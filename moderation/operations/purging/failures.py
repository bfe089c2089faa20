"""Failures of a purge: buckets, messages and errors, for a person to follow up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from moderation.domain.packing import unpack_ids
from moderation.models import Purge
from moderation.models.steps import StepQuerySet, UndoStepQuerySet

IDS_SHOWN = 10
BUCKETS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed messages of one bucket. ids: the first of them; `count` is their total number.

    of_undo: they could not be restored; otherwise they could not be deleted.
    """

    channel_id: int
    bucket: int
    count: int
    ids: Sequence[int]
    error: str
    of_undo: bool

    @property
    def others(self) -> int:
        """Number of ids that are not listed."""
        return self.count - len(self.ids)

    def as_line(self) -> str:
        """Return a one-line summary for a terminal."""
        ids = ", ".join([*map(str, self.ids), *(["…"] if self.others else [])])
        failed = "not restored" if self.of_undo else "failed"
        return f"bucket {self.bucket} of channel {self.channel_id}: {self.count:,} {failed}: {self.error} ({ids})"


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed buckets, oldest first, and the number of further ones."""

    shown: Sequence[Failure]
    others: int

    def as_lines(self) -> list[str]:
        """Return one line per bucket, for a terminal."""
        lines = [one.as_line() for one in self.shown]
        return [*lines, f"and {self.others:,} more buckets"] if self.others else lines


def failures_of(purge: Purge) -> Failures:
    """Return the buckets with failures that were not retried since."""
    deletes, restores = purge.steps.filter(failed__gt=0), purge.undo_steps.filter(failed__gt=0)
    found = [*_first_failures(deletes, of_undo=False), *_first_failures(restores, of_undo=True)]
    shown = sorted(found, key=attrgetter("channel_id", "bucket"))[:BUCKETS_SHOWN]
    is_complete = len(found) < BUCKETS_SHOWN
    return Failures(shown, 0 if is_complete else deletes.count() + restores.count() - len(shown))


def _first_failures(failed: StepQuerySet | UndoStepQuerySet, *, of_undo: bool) -> list[Failure]:
    named = ("channel_id", "bucket", "failed", "failed_ids", "error")
    rows = failed.order_by("channel_id", "bucket", "ordinal").values_list(*named)[:BUCKETS_SHOWN]
    return [
        Failure(channel_id, bucket, count, unpack_ids(ids)[:IDS_SHOWN], error, of_undo=of_undo)
        for channel_id, bucket, count, ids, error in rows
    ]
