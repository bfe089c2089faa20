"""A spark: the posts of the last hour as bars without axes, beside the name of a channel."""

from __future__ import annotations

from collections.abc import Sequence

BAR_PITCH = 3
HEIGHT = 14

_LEAST = 2.0
"""Height of a bar of a single post beside a large one: still visible."""

_FULL_SCALE = 10
"""Posts of a bar that fills the height, if no bar has more: a quiet channel must not look like a busy one."""


def draw_spark(posts: Sequence[int]) -> str:
    """Return the bars as an SVG path to be stroked, one bar every `BAR_PITCH`, `HEIGHT` high; empty without posts."""
    scale = (HEIGHT - _LEAST) / max(_FULL_SCALE, *posts) if posts else 0
    return "".join(
        f"M{index * BAR_PITCH + 1} {HEIGHT}v-{round(_LEAST + number * scale, 1):g}"
        for index, number in enumerate(posts)
        if number
    )
