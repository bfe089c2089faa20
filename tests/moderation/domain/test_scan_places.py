"""The places of a scan, to which its buckets are added some at a time by several workers, are those of all of them."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import Any

import pytest

from moderation.models import ManifestBucket
from moderation.operations.preview.manifest_summary import (
    MAX_CHANNELS,
    MAX_ENDS,
    NO_PLACES,
    OPEN_CHANNELS,
    Summary,
)
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


def added(buckets: list[ManifestBucket], *, at_once: int, split: set[int], seed: int) -> Summary:
    """Add the buckets by parts of whole channels, in an order that is drawn; those of the channels `split` singly."""
    drawn = random.Random(seed)
    parts: dict[tuple[int, ...], list[ManifestBucket]] = defaultdict(list)
    for one in buckets:
        # Between two channels that are split there is a part at least.
        key = (
            (one.channel_id, one.bucket) if one.channel_id in split else (-1, one.channel_id // 10, *_below(one, split))
        )
        parts[key].append(one)
    pending = [(part, part[0].channel_id in split) for part in parts.values()]
    places: dict[str, Any] = NO_PLACES
    while pending:
        part, is_split = pending.pop(drawn.randrange(len(pending)))
        new, left = part[:at_once], part[at_once:]
        if left:
            pending.append((left, False))
        end = left[0].channel_id if left else new[-1].channel_id + 1
        finished = range(0) if is_split else range(new[0].channel_id, end)
        places = json.loads(json.dumps(add_buckets(places, new, finished=finished)))
    assert {row[0] for row in places[OPEN_CHANNELS]} == split
    return Summary.from_json(places)


def _below(one: ManifestBucket, channels: set[int]) -> list[int]:
    return sorted(channel for channel in channels if channel < one.channel_id)


@pytest.mark.parametrize("at_once", [1, 7, 200])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("split", [set(), {7, 30, 31}], ids=["whole", "split"])
def test_places_are_those_of_all_buckets(seed: int, at_once: int, split: set[int]) -> None:
    buckets = scanned(seed)
    summary = added(buckets, at_once=at_once, split=split & {one.channel_id for one in buckets}, seed=seed)
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
    add_buckets(NO_PLACES, scanned(0), finished=range(0))
    assert NO_PLACES["channels"] == NO_PLACES["periods"] == NO_PLACES[OPEN_CHANNELS] == []
