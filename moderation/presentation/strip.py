"""The bucket strip: a channel's whole life as one row of bars, ten days each.

Pure: buckets with their figures go in, coordinates and words come out; a template draws
them as SVG and as a table. Heights are logarithmic, so that a quiet month stays visible
beside a raid of a hundred thousand.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from chatstore.domain.buckets import bucket_days, days_in_words

HEIGHT = 56
LABELS = 18
"""Pixels of the bars' field and of the line of dates below it."""

NARROW, BESIDE_CHANNELS, WIDE = 836, 920, 1_158
"""Pixels across a card: of a narrow page, of the timeline, of a page of full width, in a window of 1280."""

_NARROWEST = 7
_FEWEST = 24
"""Slots that fill the width; fewer bars would be as wide as they are high."""

_PARTS = 16
"""Slots are so many parts of a pixel wide: sums of such numbers are exact, and the last bar ends where it should."""

_LEAST_WIDTH = 70
_GAP_BARS = 3
_LONGEST_SILENCE = 18
"""Six months without a bucket are drawn as a break: an import of 2009 must not push today off the page."""

_LABEL_DISTANCE = 52
_LEAST_HEIGHT = 3.0
_UNCOUNTED_HEIGHT = 20.0


@dataclass(frozen=True, slots=True)
class StripBucket:
    """A bucket as the strip is given it.

    count: messages, or None when nobody counted them yet (never drawn as 0). going: how many
    of them are chosen to go. done: going has happened. note: more words for the title.
    kind, title: what they are instead of what follows from the counts; "going" then is what is dead.
    """

    bucket: int
    count: int | None
    going: int = 0
    done: bool = False
    note: str = ""
    kind: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: `y` and `height` of all of it; the part that goes is `red_height` from its top.

    slot: the width that answers the pointer, its neighbour's gap included.
    """

    bucket: int
    x: float
    y: float
    width: float
    slot: float
    height: float
    red_height: float
    kind: str
    here: bool
    title: str
    count: int | None
    going: int
    first_day: dt.date
    last_day: dt.date

    @property
    def grey_y(self) -> float:
        """Where the part that stays begins."""
        return round(self.y + self.red_height, 1)

    @property
    def grey_height(self) -> float:
        """How high the part that stays is."""
        return round(max(self.height - self.red_height, 0.0), 1)

    @property
    def at(self) -> str:
        """The day to jump to, as the timeline's `at` wants it."""
        return self.first_day.isoformat()

    @property
    def stays(self) -> int | None:
        """How many stay, where that is known."""
        return None if self.count is None else max(self.count - self.going, 0)


@dataclass(frozen=True, slots=True)
class Label:
    """A date below the bars."""

    x: float
    words: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Everything that the templates draw; empty when the channel never held anything."""

    bars: Sequence[Bar]
    labels: Sequence[Label]
    breaks: Sequence[float]
    width: float
    bar_field: int = HEIGHT
    height: int = HEIGHT + LABELS

    @property
    def total(self) -> int:
        """Counted messages in all buckets."""
        return sum(bar.count or 0 for bar in self.bars)

    @property
    def is_purge(self) -> bool:
        """Whether something on it is chosen to go, or went."""
        return any(bar.going for bar in self.bars)

    @property
    def has_uncounted(self) -> bool:
        """Whether some bucket was never counted, so that `total` is a lower bound."""
        return any(bar.count is None for bar in self.bars)


def draw_strip(
    buckets: Iterable[StripBucket],
    *,
    here: range | None = None,
    today: int | None = None,
    room: int = NARROW,
) -> Strip:
    """The strip of a channel. here: the buckets on the page. today: the open bucket, always drawn.

    room: pixels that it fills, unless it has too few buckets, or too many and scrolls.
    """
    known = {entry.bucket: entry for entry in buckets}
    if not known:
        return Strip((), (), (), 0.0)
    if today is not None:
        known.setdefault(today, StripBucket(today, 0))
    slots = _place(sorted(known))
    pitch = max(room * _PARTS // max(len(slots), _FEWEST) / _PARTS, _NARROWEST)
    peak = max([10, *(entry.count for entry in known.values() if entry.count)])
    bars: list[Bar] = []
    breaks: list[float] = []
    for position, bucket in enumerate(slots):
        if bucket is None:
            breaks.append((position + 0.5) * pitch)
        else:
            entry = known.get(bucket, StripBucket(bucket, 0))
            is_here = here is not None and bucket in here
            bars.append(_draw_bar(entry, x=position * pitch, width=pitch - 2, peak=peak, here=is_here))
    return Strip(tuple(bars), _label(bars, pitch=pitch), _middles(breaks), max(len(slots) * pitch, _LEAST_WIDTH))


def _place(buckets: Sequence[int]) -> list[int | None]:
    """The slots from left to right; None is a part of a long silence."""
    slots: list[int | None] = [buckets[0]]
    for before, bucket in pairwise(buckets):
        if bucket - before > _LONGEST_SILENCE:
            slots += [None] * _GAP_BARS
        else:
            slots += range(before + 1, bucket)
        slots.append(bucket)
    return slots


def _middles(breaks: Sequence[float]) -> tuple[float, ...]:
    """The middle of each break: every third of its slots' middles, the second one."""
    return tuple(breaks[1::_GAP_BARS])


def _draw_bar(entry: StripBucket, *, x: float, width: float, peak: int, here: bool) -> Bar:
    first_day, last_day = bucket_days(entry.bucket)
    height = _height_of(entry.count, peak=peak)
    red = 0.0
    if entry.going:
        share = 1.0 if not entry.count else min(entry.going / entry.count, 1.0)
        least = min(_LEAST_HEIGHT, height)
        red = height * share if share == 1.0 else min(max(height * share, least), height - least)
    return Bar(
        bucket=entry.bucket,
        x=x,
        y=round(HEIGHT - height, 1),
        width=width,
        slot=width + 2,
        height=round(height, 1),
        red_height=round(max(red, 0.0), 1),
        kind=_kind_of(entry),
        here=here,
        title=entry.title or _title_of(entry, first_day, last_day),
        count=entry.count,
        going=entry.going,
        first_day=first_day,
        last_day=last_day,
    )


def _height_of(count: int | None, *, peak: int) -> float:
    if count is None:
        return _UNCOUNTED_HEIGHT
    if count <= 0:
        return 1.0
    return _LEAST_HEIGHT + (HEIGHT - _LEAST_HEIGHT) * math.log1p(count) / math.log1p(peak)


def _kind_of(entry: StripBucket) -> str:
    if entry.kind:
        return entry.kind
    if entry.going:
        return "done" if entry.done else "going"
    if entry.count is None:
        return "uncounted"
    return "live" if entry.count else "empty"


def _title_of(entry: StripBucket, first: dt.date, last: dt.date) -> str:
    words = "not counted yet" if entry.count is None else _say_messages(entry.count)
    if entry.going:
        words += f", {entry.going:,} {'removed' if entry.done else 'to be removed'}"
    note = f" ({entry.note})" if entry.note else ""
    return f"{days_in_words(first, last)}: {words}{note}"


def _say_messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


def _label(bars: Sequence[Bar], *, pitch: float) -> tuple[Label, ...]:
    """Months for a short life, quarters for a longer one, years for a long one; never crowded."""
    months = 1 if len(bars) <= 40 else 3 if len(bars) <= 130 else 12
    labels: list[Label] = []
    said: tuple[int, int] | None = None
    for bar in bars:
        day = bar.first_day
        period = (day.year, (day.month - 1) // months)
        if period == said:
            continue
        said = period
        if not labels or bar.x - labels[-1].x >= _LABEL_DISTANCE:
            labels.append(Label(bar.x, str(day.year) if months == 12 else f"{day:%b %Y}"))
    room = len(bars) * pitch - _LABEL_DISTANCE
    return tuple(label for label in labels if label.x <= room or label is labels[0])
