"""Places of a running scan: the part of the summary that its page shows, in the shape of a stored summary.

Kept by the transactions that store the scan's buckets: the page polls, and would read up to 50,000 of them each time.
Workers store buckets of different channels side by side, but of most channels one of them has all buckets, in order. Of
the channels that are finished only the largest are needed; those of which more may be found are kept besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moderation.models import ManifestBucket, ManifestSummary
from moderation.operations.preview.manifest_summary import (
    MAX_CHANNELS,
    MAX_ENDS,
    NO_PLACES,
    OPEN_CHANNELS,
    store_summary,
)


def add_to_places(purge_id: int, buckets: Sequence[ManifestBucket], *, finished: range) -> None:
    """Add buckets; called with the purge's row locked. finished: ids of the channels whose last bucket is added."""
    if buckets:
        stored = ManifestSummary.objects.filter(purge_id=purge_id).values_list("data", flat=True).first()
        store_summary(purge_id, add_buckets(stored or NO_PLACES, buckets, finished=finished))


def add_buckets(places: dict[str, Any], buckets: Sequence[ManifestBucket], *, finished: range) -> dict[str, Any]:
    """Return the places with further buckets. finished: ids of channels of which no more buckets will be added."""
    rows = (*places["channels"], *places[OPEN_CHANNELS])
    channels = {row[0]: [*row] for row in rows}
    open_ids = {row[0] for row in places[OPEN_CHANNELS]} | {one.channel_id for one in buckets}
    periods = {row[0]: [*row] for row in places["periods"]}
    count = places["channel_count"]
    for one in buckets:
        if one.channel_id not in channels:
            channels[one.channel_id] = [one.channel_id, 0, 0, one.bucket]
            count += 1
        channel = channels[one.channel_id]
        channel[1] += one.count
        channel[2] = None if channel[2] is None or one.survivors is None else channel[2] + one.survivors
        channel[3] = min(channel[3], one.bucket)
        period = periods.setdefault(one.bucket, [one.bucket, 0, 0, False])
        period[1] += one.count
        period[2] += one.survivors or 0
        period[3] |= one.survivors is None
    newest = [*places["newest"], *([one.channel_id, one.bucket, one.last_id] for one in buckets)]
    return {
        "channel_count": count,
        "channels": sorted(channels.values(), key=lambda row: (-row[1], row[0]))[:MAX_CHANNELS],
        "periods": sorted(periods.values()),
        "newest": sorted(newest, key=lambda row: row[2], reverse=True)[:MAX_ENDS],
        OPEN_CHANNELS: [channels[channel_id] for channel_id in sorted(open_ids) if channel_id not in finished],
    }
