"""A spark has a bar for each part of the hour that has posts, and quiet channels have low ones."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from moderation.presentation.spark import BAR_PITCH, HEIGHT, draw_spark


def bars_of(posts: list[int]) -> list[tuple[int, float]]:
    path = draw_spark(posts)
    bars = re.findall(r"M(\d+) (\d+)v-([\d.]+)", path)
    assert "".join(f"M{x} {y}v-{height}" for x, y, height in bars) == path
    return [(int(x) // BAR_PITCH, float(height)) for x, _, height in bars]


@given(st.lists(st.integers(0, 10_000), max_size=12))
def test_each_part_with_posts_has_a_bar_within_the_height(posts: list[int]) -> None:
    bars = bars_of(posts)
    assert [index for index, _ in bars] == [index for index, number in enumerate(posts) if number]
    assert all(2 <= height <= HEIGHT for _, height in bars)
    tallest = max((height for _, height in bars), default=0)
    assert all(height == tallest for index, height in bars if posts[index] == max(posts))


def test_a_single_post_is_low_and_ten_fill_the_height() -> None:
    assert bars_of([1])[0][1] < HEIGHT / 3
    assert bars_of([10, 5])[0][1] == HEIGHT
