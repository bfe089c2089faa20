"""The places of a scan, to which its buckets are added some at a time, are those of all of its buckets."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import Any

import pytest

from moderation.models import ManifestBucket
from moderation.operations.preview.manifest_summary import MAX_CHANNELS, MAX_ENDS, NO_PLACES, Summary
from moderation.operations.preview.scan_places import add_buckets


def scanned(seed: int) -> list[ManifestBucket]:
    """Return the buckets of a scan, in its order: by channel, oldest first."""
    drawn = random.Random(seed)
    keys = sorted({(drawn.randrange(60), drawn.randrange(8)) for _ in range(200)})
    last_ids = drawn.sample(range(10_000), len(keys))
    return [
        ManifestBucket(
            channel_id=channel_id,
            bucket=bucket,
            count=drawn.randint(1, 9),
            survivors=drawn.choice([None, 0, 3, 5, 7, 9]),
            last_id=last_id,
        )
        for (channel_id, bucket), last_id in zip(keys, last_ids, strict=True)
    ]


def added(buckets: list[ManifestBucket], *, at_once: int) -> Summary:
    places: dict[str, Any] = NO_PLACES
    for start in range(0, len(buckets), at_once):
        places = json.loads(json.dumps(add_buckets(places, buckets[start : start + at_once])))
    return Summary.from_json(places)


@pytest.mark.parametrize("at_once", [1, 7, 200])
@pytest.mark.parametrize("seed", range(5))
def test_places_are_those_of_all_buckets(seed: int, at_once: int) -> None:
    buckets = scanned(seed)
    summary = added(buckets, at_once=at_once)
    by_channel: dict[int, list[ManifestBucket]] = defaultdict(list)
    for one in buckets:
        by_channel[one.channel_id].append(one)
    largest = sorted(by_channel, key=lambda channel: (-sum(one.count for one in by_channel[channel]), channel))
    assert summary.channel_count == len(by_channel) > MAX_CHANNELS
    assert [(one.channel_id, one.matched, one.kept, one.first_bucket) for one in summary.channels] == [
        (
            channel,
            sum(one.count for one in by_channel[channel]),
            None
            if any(one.survivors is None for one in by_channel[channel])
            else sum(one.survivors or 0 for one in by_channel[channel]),
            by_channel[channel][0].bucket,
        )
        for channel in largest[:MAX_CHANNELS]
    ]
    newest = sorted(buckets, key=lambda one: one.last_id or 0, reverse=True)[:MAX_ENDS]
    assert summary.newest == [(one.channel_id, one.bucket) for one in newest]
    for period in summary.periods:
        there = [one for one in buckets if one.bucket == period.bucket]
        assert (period.matched, period.kept, period.is_partial) == (
            sum(one.count for one in there),
            sum(one.survivors or 0 for one in there),
            any(one.survivors is None for one in there),
        )
    assert sum(period.matched for period in summary.periods) == sum(one.count for one in buckets)


def test_adding_changes_nothing_that_was_stored_before() -> None:
    add_buckets(NO_PLACES, scanned(0))
    assert NO_PLACES["channels"] == NO_PLACES["periods"] == []
