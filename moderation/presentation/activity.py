"""Activity of a user by channel and time: a strip for each channel, all on the same time axis.

Takes buckets and returns coordinates and labels. A bucket records only whether the user posted, not how much: all
bars have one height, and consecutive buckets form one bar.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chatstore.domain.buckets import bucket_days
from moderation.presentation import formats

WIDTH = 720.0
_MIN_BAR_WIDTH = 3.0
"""The narrowest bar that is still visible and clickable when a strip covers ten years."""


@dataclass(frozen=True, slots=True)
class ActivitySpan:
    """A bucket, or several consecutive ones, in which the user wrote."""

    x: float
    width: float
    first_day: dt.date
    last_day: dt.date

    @property
    def at(self) -> str:
        """Return the day to jump to, as the timeline's parameter `at`."""
        return formats.utc_midnight(self.first_day)

    @property
    def title(self) -> str:
        """Return the days as text."""
        return formats.format_days(self.first_day, self.last_day)


@dataclass(frozen=True, slots=True)
class ActivityStrips:
    """Strips by channel, and the day on which all of them begin. They end today."""

    strips: Mapping[int, Sequence[ActivitySpan]]
    first_day: dt.date
    width: float = WIDTH


def draw_activity(
    buckets: Mapping[int, Iterable[int]], *, today: int, since: dt.date | None = None
) -> ActivityStrips | None:
    """Draw the strips of some channels, from the first bucket of any to today's; None if there are no buckets.

    since: when the account was created; nothing before it is drawn, if it is within the first bucket.
    """
    ordered = {channel_id: sorted(set(there)) for channel_id, there in buckets.items() if there}
    if not ordered:
        return None
    begin, latest = bucket_days(min(there[0] for there in ordered.values()))
    end = bucket_days(max(today, *(there[-1] for there in ordered.values())))[1]
    first_day = since if since is not None and begin < since <= latest else begin
    pitch = WIDTH / ((end - first_day).days + 1)
    strips = {
        channel_id: [_draw_span(*ends, first_day=first_day, pitch=pitch) for ends in _spans(there)]
        for channel_id, there in ordered.items()
    }
    return ActivityStrips(strips, first_day)


def _spans(buckets: Sequence[int]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for bucket in buckets:
        if spans and spans[-1][1] == bucket - 1:
            spans[-1] = spans[-1][0], bucket
        else:
            spans.append((bucket, bucket))
    return spans


def _draw_span(begin: int, end: int, *, first_day: dt.date, pitch: float) -> ActivitySpan:
    first, last = max(bucket_days(begin)[0], first_day), bucket_days(end)[1]
    width = max(((last - first).days + 1) * pitch, _MIN_BAR_WIDTH)
    x = min((first - first_day).days * pitch, WIDTH - width)
    return ActivitySpan(round(x, 1), round(width, 1), first, last)
