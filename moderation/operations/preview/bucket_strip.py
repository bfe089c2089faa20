"""Bucket strip of a channel: as a map, as a purge's preview, as its progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from django.utils import timezone

from chatstore.domain.buckets import bucket_at
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.snowflakes import unix_ms
from chatstore.operations.gateway.timeline import BucketCount, count_buckets
from moderation.domain.packing import unpack_ids
from moderation.domain.states import DELETING, StepState
from moderation.models import Purge
from moderation.presentation.strip import NARROW, Strip, StripBucket, draw_strip

MAX_FULL_CHANNELS = 12
"""Maximum number of channels whose whole history is read for one picture: one read each."""


def map_channel(channel_id: int, *, here: range | None = None, width: int = NARROW) -> Strip:
    """Return the strip of a channel. here: the buckets on the page. width: in pixels."""
    today = bucket_at(unix_ms(timezone.now()))
    counts = count_buckets(channel_id)
    return draw_strip((StripBucket(c.bucket, c.count) for c in counts), here=here, today=today, width=width)


def map_purge(purge: Purge, channel_ids: Sequence[int]) -> Strip:
    """Return the strip of some channels with a purge's messages: red while they exist, empty once deleted.

    Uses the scan's own counts where available, so that the picture is stable while the purge runs. Restored and held
    messages are grey. With more than `MAX_FULL_CHANNELS` channels, only buckets that the scan read are drawn.
    """
    kept: Counter[int] = Counter()
    highlighted: Counter[int] = Counter()
    uncounted: set[int] = set()
    read_in_part: set[int] = set()
    frozen = set()
    for entry in purge.manifest_buckets.filter(channel_id__in=channel_ids).defer("authors", "plan"):
        frozen.add((entry.channel_id, entry.bucket))
        kept[entry.bucket] += entry.survivors or 0
        if entry.survivors is None:
            read_in_part.add(entry.bucket)
        highlighted[entry.bucket] += entry.count
    for bucket, count in _held_by_bucket(purge, channel_ids).items():
        kept[bucket] += count
        highlighted[bucket] -= count
    for channel_id in channel_ids if len(channel_ids) <= MAX_FULL_CHANNELS else ():
        for other in _count_if_possible(channel_id):
            if (channel_id, other.bucket) not in frozen:
                kept[other.bucket] += other.count or 0
                if other.count is None:
                    uncounted.add(other.bucket)
    is_deleted = _deleted_by_bucket(purge, channel_ids)
    restored = _restored_by_bucket(purge, channel_ids)
    return draw_strip(
        StripBucket(
            bucket,
            None
            if bucket in read_in_part or (bucket in uncounted and not highlighted[bucket])
            else kept[bucket] + highlighted[bucket],
            highlighted=highlighted[bucket] - restored[bucket],
            is_deleted=is_deleted.get(bucket, False),
        )
        for bucket in kept.keys() | highlighted.keys()
    )


def _count_if_possible(channel_id: int) -> Sequence[BucketCount]:
    """Return the channel's counts, or none: a purge that waits for the store must still be shown."""
    try:
        return count_buckets(channel_id)
    except StoreUnavailable:
        return ()


def _deleted_by_bucket(purge: Purge, channel_ids: Sequence[int]) -> Mapping[int, bool]:
    """Return whether all of a purge's steps in a bucket are counted, by bucket; without held steps."""
    done: dict[int, bool] = {}
    steps = purge.steps.filter(channel_id__in=channel_ids, kind__in=DELETING).exclude(state=StepState.HELD)
    for bucket, state in steps.values_list("bucket", "state"):
        done[bucket] = done.get(bucket, True) and state == StepState.COUNTED
    return done


def _held_by_bucket(purge: Purge, channel_ids: Sequence[int]) -> Counter[int]:
    held: Counter[int] = Counter()
    for bucket, count in purge.steps.filter(channel_id__in=channel_ids, held__gt=0).values_list("bucket", "held"):
        held[bucket] += count
    return held


def _restored_by_bucket(purge: Purge, channel_ids: Sequence[int]) -> Counter[int]:
    restored: Counter[int] = Counter()
    undone = purge.steps.filter(channel_id__in=channel_ids, undone_ids__isnull=False)
    for bucket, ids in undone.values_list("bucket", "undone_ids"):
        restored[bucket] += len(unpack_ids(ids))
    return restored
