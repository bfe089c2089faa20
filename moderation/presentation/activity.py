"""Activity of a user by channel and time: a strip for each channel, all on the same time axis.

Takes the times of messages, or else buckets, and returns coordinates and labels. A bucket records only whether the user
posted, not how much: all bars of buckets have one height, and consecutive buckets form one bar.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, NamedTuple, TypeVar

from chatstore.domain.buckets import bucket_days
from chatstore.domain.snowflakes import first_id_at, time_of, unix_ms
from moderation.domain.zoom import count_in_slots, window_until
from moderation.presentation import formats

WIDTH = 720.0
BASE = 17.0
"""The lower edge of all bars."""

HEIGHT = 15.0
_MILLISECOND = dt.timedelta(milliseconds=1)
_MIN_HEIGHT = 2.0
"""The lowest bar that is still visible."""

_MIN_BAR_WIDTH = 3.0
"""The narrowest bar that is still visible and clickable when a strip covers ten years."""


class Bar(NamedTuple):
    """A rectangle of a strip; all stand on its lower edge."""

    x: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class PostsSpan:
    """Consecutive slots of time in which the user posted: a bar for each. at: the beginning, as a timeline takes it."""

    x: float
    width: float
    at: str
    title: str
    bars: Sequence[Bar]


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

    @property
    def bars(self) -> Sequence[Bar]:
        """Return one bar of the full height."""
        return (Bar(self.x, self.width, HEIGHT),)


Span_co = TypeVar("Span_co", bound=ActivitySpan | PostsSpan, covariant=True)


@dataclass(frozen=True, slots=True)
class ActivityStrips(Generic[Span_co]):
    """Strips by channel, and the day on which all of them begin. They end today.

    first_at: the time at which they begin, if they show messages; then they end now. top: messages of the tallest bar.
    """

    strips: Mapping[int, Sequence[Span_co]]
    first_day: dt.date
    first_at: dt.datetime | None = None
    top: int = 0
    width: float = WIDTH


def draw_posts(message_ids: Mapping[int, Sequence[int]], *, now: dt.datetime) -> ActivityStrips[PostsSpan] | None:
    """Draw how many messages a user posted when, in some channels, from the first one until now; None without any.

    message_ids: by channel, ascending.
    """
    posted = {channel_id: there for channel_id, there in message_ids.items() if there}
    if not posted:
        return None
    first, last = min(there[0] for there in posted.values()), max(there[-1] for there in posted.values())
    # The clock of a server may be ahead.
    edges = window_until(time_of(first), max(now, time_of(last) + _MILLISECOND)).edges
    bounds = [first_id_at(unix_ms(edge)) for edge in edges]
    counts = {channel_id: count_in_slots(there, bounds) for channel_id, there in posted.items()}
    top = max(max(there) for there in counts.values())
    places = [(edge - edges[0]) / (edges[-1] - edges[0]) * WIDTH for edge in edges]
    # The last slot may have begun a moment ago.
    places[-2] = min(places[-2], WIDTH - _MIN_BAR_WIDTH)
    strips = {channel_id: _draw_slots(there, edges, places, top=top) for channel_id, there in counts.items()}
    return ActivityStrips(strips, edges[0].date(), edges[0], top)


def _draw_slots(
    counts: Sequence[int], edges: Sequence[dt.datetime], places: Sequence[float], *, top: int
) -> list[PostsSpan]:
    spans = []
    for has_any, group in groupby(range(len(counts)), key=lambda slot: counts[slot] > 0):
        if not has_any:
            continue
        slots = list(group)
        begin, end = edges[slots[0]], edges[slots[-1] + 1]
        posts = formats.format_count(sum(counts[slot] for slot in slots), "message")
        spans.append(
            PostsSpan(
                round(places[slots[0]], 1),
                round(places[slots[-1] + 1] - places[slots[0]], 1),
                f"{begin.astimezone(dt.UTC):%Y-%m-%dT%H:%MZ}",
                f"{formats.format_span(begin, end)}: {posts}",
                [_draw_slot(places[slot], places[slot + 1], counts[slot] / top) for slot in slots],
            )
        )
    return spans


def _draw_slot(begin: float, end: float, share: float) -> Bar:
    width = max(end - begin - 1, _MIN_BAR_WIDTH)
    return Bar(round(begin, 1), round(width, 1), round(max(share * HEIGHT, _MIN_HEIGHT), 1))


def draw_activity(
    buckets: Mapping[int, Iterable[int]], *, today: int, since: dt.date | None = None
) -> ActivityStrips[ActivitySpan] | None:
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
