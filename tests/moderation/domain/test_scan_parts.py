"""The scope of a scan is split into parts that workers can process side by side."""

from __future__ import annotations

import random
from itertools import chain

import pytest

from moderation.operations.preview.bucket_reads import UNCOUNTED_ROWS
from moderation.operations.preview.scan_parts import PART_BUCKETS, PART_ROWS, Part, split_scope
from moderation.operations.selection.scope import BucketInScope


def scope_of(*buckets: int, rows: int | None = 10) -> list[BucketInScope]:
    """Return a scope of channels with these numbers of buckets."""
    return [BucketInScope(channel, bucket, rows) for channel, n in enumerate(buckets) for bucket in range(n)]


def shape_of(scope: list[BucketInScope]) -> list[tuple[set[int], int, bool]]:
    """Return (channels, number of buckets, is split) for each part."""
    parts = split_scope(iter(scope))
    return [({one.channel_id for one in part.buckets}, len(part.buckets), part.is_split) for part in parts]


def test_small_channels_share_a_part() -> None:
    assert shape_of(scope_of(100, 100, 100)) == [({0, 1}, 200, False), ({2}, 100, False)]


def test_a_channel_that_is_too_large_has_parts_of_its_own() -> None:
    assert shape_of(scope_of(3, 2 * PART_BUCKETS + 5, 4)) == [
        ({0}, 3, False),
        ({1}, PART_BUCKETS, True),
        ({1}, PART_BUCKETS, True),
        ({1}, 5, True),
        ({2}, 4, False),
    ]


def test_a_channel_of_which_parts_were_listed_before_shares_none() -> None:
    parts = split_scope(scope_of(3, 4), split=0)
    assert [(len(part.buckets), part.is_split) for part in parts] == [(3, True), (4, False)]


def test_parts_of_many_rows_have_fewer_buckets() -> None:
    assert shape_of(scope_of(4, rows=PART_ROWS // 2)) == [({0}, 2, True), ({0}, 2, True)]
    assert shape_of(scope_of(2, rows=10 * PART_ROWS)) == [({0}, 1, True), ({0}, 1, True)]
    counted_later = PART_ROWS // UNCOUNTED_ROWS
    assert shape_of(scope_of(counted_later, 1, rows=None)) == [({0}, counted_later, False), ({1}, 1, False)]


def test_nothing_has_no_parts() -> None:
    assert shape_of([]) == []


@pytest.mark.parametrize("seed", range(20))
def test_each_bucket_is_in_one_part_in_the_order_of_the_scope(seed: int) -> None:
    drawn = random.Random(seed)
    scope = [
        BucketInScope(channel, bucket, drawn.choice([None, 0, 30, 900, 70_000]))
        for channel in range(40)
        for bucket in range(drawn.choice([1, 5, 90, 600]))
    ]
    parts: list[Part] = list(split_scope(scope))
    assert list(chain.from_iterable(part.buckets for part in parts)) == scope
    whole = [{one.channel_id for one in part.buckets} for part in parts if not part.is_split]
    split = {one.channel_id for part in parts if part.is_split for one in part.buckets}
    assert len(set.union(set(), *whole)) == sum(map(len, whole))
    assert not split & set.union(set(), *whole)
