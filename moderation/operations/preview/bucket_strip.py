"""Bucket strip of a channel: as a map, as a purge's preview, as its progress."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.db.models import Sum
from django.utils import timezone

from chatstore.domain.buckets import bucket_at
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.snowflakes import unix_ms
from chatstore.operations.gateway.timeline import BucketCount, count_buckets_in
from moderation.domain.outcomes import DeletionStatus, status_of_step
from moderation.domain.states import DELETING, PurgeState
from moderation.models import Purge
from moderation.operations.preview.deleted_since import DeletedSince, count_by_bucket
from moderation.operations.preview.manifest_summary import BucketEntry, Summary, entries_in
from moderation.operations.preview.purge_summary import FINAL_PURGES
from moderation.presentation.strip import NARROW, Strip, StripBucket, draw_strip

MAX_FULL_CHANNELS = 12
"""Maximum number of channels whose whole history is read for one picture: one read each."""


def map_channel(counts: Iterable[BucketCount], *, here: range | None = None, width: int = NARROW) -> Strip:
    """Return the strip of a channel's buckets, oldest first. here: the buckets on the page. width: in pixels."""
    today = bucket_at(unix_ms(timezone.now()))
    return draw_strip((StripBucket(c.bucket, c.count) for c in counts), here=here, today=today, width=width)


@dataclass(slots=True)
class _Counts:
    """Counts of one channel by bucket, or of many channels together."""

    kept: Counter[int] = field(default_factory=Counter)
    highlighted: Counter[int] = field(default_factory=Counter)
    restored: Counter[int] = field(default_factory=Counter)
    failed: Counter[int] = field(default_factory=Counter)
    uncounted: set[int] = field(default_factory=set)
    read_in_part: set[int] = field(default_factory=set)
    frozen: set[int] = field(default_factory=set)
    is_deleted: dict[int, bool] = field(default_factory=dict)

    def keep(self, bucket: int, number: int) -> None:
        """Count some messages of the purge as kept."""
        if number:
            self.kept[bucket] += number
            self.highlighted[bucket] -= number

    def fail(self, bucket: int, number: int) -> None:
        """Count some messages of the purge as failed."""
        if number:
            self.failed[bucket] += number
            self.highlighted[bucket] -= number

    def add(self, other: _Counts) -> None:
        """Add the counts of another channel."""
        self.kept.update(other.kept)
        self.highlighted.update(other.highlighted)
        self.restored.update(other.restored)
        self.failed.update(other.failed)
        self.uncounted |= other.uncounted
        self.read_in_part |= other.read_in_part
        for bucket, done in other.is_deleted.items():
            self.is_deleted[bucket] = self.is_deleted.get(bucket, True) and done


@dataclass(frozen=True, slots=True)
class MessageTotal:
    """Number of messages in all channels of a purge. is_estimate: it has counts that may be out of date."""

    messages: int
    is_estimate: bool


class PurgeMap:
    """Numbers of a purge's messages by bucket, read once, for the strip of all channels.

    Messages are highlighted while they exist, and empty once deleted. Uses the scan's own counts where available, so
    that the picture is stable while the purge runs. Restored and failed ones are told apart; those that are held, or
    that a cancelled or discarded purge does not delete, count as kept. With more than `MAX_FULL_CHANNELS` channels,
    only buckets that the scan read are drawn, and only of all channels together, from sums.

    entries: the buckets of the manifest in the channels; None if there are so many. is_whole: all buckets of the
    channels are drawn. total: before the purge deletes; None if the number of any bucket is not known.
    """

    entries: Sequence[BucketEntry] | None = None
    is_whole = False
    total: MessageTotal | None = None

    def __init__(
        self,
        purge: Purge,
        summary: Summary,
        channel_ids: Sequence[int],
        *,
        deleted_since: DeletedSince | None = None,
    ) -> None:
        """Read the numbers. channel_ids: those that the viewer may see; of very many channels some of them.

        deleted_since: messages of a preview that other purges have deleted, which are not drawn.

        Sums are of all channels: a purge is visible only to accounts that may see all of them.
        """
        self._counts: defaultdict[int, _Counts] = defaultdict(_Counts)
        self._is_expired = purge.state == PurgeState.EXPIRED
        self._deleted_since = count_by_bucket(deleted_since or {})
        if max(summary.channel_count, len(channel_ids)) > MAX_FULL_CHANNELS:
            if channel_ids:
                self._read_sums(purge, summary)
            return
        self._read_manifest(purge, channel_ids)
        self._read_steps(purge, channel_ids)
        self._read_restored(purge)
        self._read_channels(channel_ids)

    def draw(self) -> Strip:
        """Return the strip of all channels together."""
        total = _Counts()
        for counts in self._counts.values():
            total.add(counts)
        kept, highlighted = total.kept, total.highlighted
        highlighted.subtract(self._deleted_since)
        if self._is_expired:
            kept.update(highlighted)
            highlighted = Counter()
        return draw_strip(
            StripBucket(
                bucket,
                None
                if bucket in total.read_in_part or (bucket in total.uncounted and not highlighted[bucket])
                else kept[bucket] + highlighted[bucket] + total.failed[bucket],
                highlighted=highlighted[bucket] - total.restored[bucket],
                is_deleted=total.is_deleted.get(bucket, False),
                restored=total.restored[bucket],
                failed=total.failed[bucket],
            )
            for bucket in kept.keys() | highlighted.keys()
        )

    def _read_sums(self, purge: Purge, summary: Summary) -> None:
        counts = self._counts[0]
        for period in summary.periods:
            counts.kept[period.bucket] += period.kept
            counts.highlighted[period.bucket] += period.matched
            if period.is_partial:
                counts.read_in_part.add(period.bucket)
        # One query each, because each has an index of its own.
        for name, count in (("held", counts.keep), ("failed", counts.fail)):
            some = purge.steps.filter(**{f"{name}__gt": 0}).order_by()
            for bucket, number in some.values_list("bucket").annotate(Sum(name)):
                count(bucket, number)
        has_ended = purge.state in FINAL_PURGES
        done: Counter[int] = Counter()
        for bucket, deleted, gone, undone in purge.periods.values_list("bucket", "deleted", "already_gone", "undone"):
            counts.restored[bucket] += undone
            done[bucket] = deleted + gone
        for bucket, number in list(counts.highlighted.items()):
            if has_ended:
                # The others were left when it was cancelled.
                counts.keep(bucket, number - done[bucket])
            counts.is_deleted[bucket] = done[bucket] >= counts.highlighted[bucket] > 0

    def _read_manifest(self, purge: Purge, channel_ids: Sequence[int]) -> None:
        self.entries = entries_in(purge, channel_ids)
        for channel_id, bucket, count, survivors, _first_id, _last_id in self.entries:
            counts = self._counts[channel_id]
            counts.kept[bucket] += survivors or 0
            counts.highlighted[bucket] += count
            if survivors is None:
                counts.read_in_part.add(bucket)
            counts.frozen.add(bucket)

    def _read_steps(self, purge: Purge, channel_ids: Sequence[int]) -> None:
        steps = purge.steps.filter(channel_id__in=channel_ids, kind__in=DELETING).order_by()
        for channel_id, bucket, state, count, failed in steps.values_list(
            "channel_id", "bucket", "state", "count", "failed"
        ):
            counts, status = self._counts[channel_id], status_of_step(state)
            if status is DeletionStatus.KEPT:
                counts.keep(bucket, count)
                continue
            counts.fail(bucket, failed)
            if status is not DeletionStatus.FAILED:
                counts.is_deleted[bucket] = counts.is_deleted.get(bucket, True) and status is DeletionStatus.DELETED

    def _read_restored(self, purge: Purge) -> None:
        """Read the numbers of restored messages, which are summed over all channels."""
        if purge.confirmed_at is not None:
            restored = purge.periods.filter(undone__gt=0).order_by().values_list("bucket", "undone")
            self._counts[0].restored.update(dict(restored))

    def _read_channels(self, channel_ids: Sequence[int]) -> None:
        """Read the buckets without messages of the purge; none if the store is unavailable, which a purge waits for."""
        found = _count_if_possible(channel_ids)
        self.is_whole = len(found) == len(channel_ids)
        numbers: list[int | None] = []
        is_estimate = False
        for channel_id, buckets in found.items():
            counts = self._counts[channel_id]
            for other in buckets:
                if other.bucket not in counts.frozen:
                    counts.kept[other.bucket] += other.count or 0
                    if other.count is None:
                        counts.uncounted.add(other.bucket)
                elif other.bucket not in counts.read_in_part:
                    numbers.append(
                        counts.kept[other.bucket] + counts.highlighted[other.bucket] + counts.failed[other.bucket]
                    )
                    continue
                numbers.append(other.count)
                is_estimate |= other.measured_at is not None
        known = [number for number in numbers if number is not None]
        # Where other programs may have written, buckets without a row in the ledger are unknown.
        is_complete = self.is_whole and settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN
        if is_complete and len(known) == len(numbers):
            self.total = MessageTotal(sum(known), is_estimate)


def _count_if_possible(channel_ids: Sequence[int]) -> Mapping[int, Sequence[BucketCount]]:
    try:
        return count_buckets_in(channel_ids)
    except StoreUnavailable:
        return {}
