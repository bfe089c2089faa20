"""The bucket strip of a channel: as a map, as a purge's preview, as its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.utils import timezone

from chatstore.domain.buckets import bucket_at
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.snowflakes import unix_ms
from chatstore.operations.timeline import BucketCount, count_buckets
from moderation.domain.states import PurgeState, StepState
from moderation.domain.strip import Strip, StripBucket, draw_strip
from moderation.models import Purge


def map_channel(channel_id: int, *, here: range | None = None) -> Strip:
    """The channel as it is. here: the buckets on the page."""
    today = bucket_at(unix_ms(timezone.now()))
    counts = count_buckets(channel_id)
    return draw_strip((StripBucket(c.bucket, c.count) for c in counts), here=here, today=today)


def map_purge(purge: Purge, channel_id: int) -> Strip:
    """The channel with what a purge takes: red while it stands there, emptied once it is gone.

    The scan's own counts are used where it looked, so that the picture does not move while
    the purge runs.
    """
    if purge.state == PurgeState.UNDONE:
        # All of it is back: the channel is as it was.
        return draw_strip(StripBucket(c.bucket, c.count) for c in _count_if_possible(channel_id))
    frozen = {entry.bucket: entry for entry in purge.manifest_buckets.filter(channel_id=channel_id)}
    removed = _removed_by_bucket(purge, channel_id)
    counts = _count_if_possible(channel_id)
    buckets = [StripBucket(c.bucket, c.count) for c in counts if c.bucket not in frozen]
    for bucket, entry in frozen.items():
        done = removed.get(bucket, False)
        count = entry.survivors + entry.count
        buckets.append(StripBucket(bucket, count, going=entry.count, done=done))
    return draw_strip(buckets)


def _count_if_possible(channel_id: int) -> Sequence[BucketCount]:
    """The channel's counts, or none: a purge that waits for the store must still be shown."""
    try:
        return count_buckets(channel_id)
    except StoreUnavailable:
        return ()


def _removed_by_bucket(purge: Purge, channel_id: int) -> Mapping[int, bool]:
    """Whether every step that a purge has in a bucket is counted, by bucket."""
    done: dict[int, bool] = {}
    for bucket, state in purge.steps.filter(channel_id=channel_id).values_list("bucket", "state"):
        done[bucket] = done.get(bucket, True) and state == StepState.COUNTED
    return done
