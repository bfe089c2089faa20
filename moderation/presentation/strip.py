"""The bucket strip: a channel's history as one row of bars, one bar per 10-day period.

Takes buckets with their counts and returns coordinates and labels, which a template draws as SVG and as a
table. Heights are linear, so that the parts to delete of all bars compare; the smallest is still visible.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from django.utils.translation import gettext, ngettext, pgettext_lazy

from chatstore.domain.buckets import bucket_days
from moderation.presentation.date_patterns import DateFormat
from moderation.presentation.formats import format_days, format_number, utc_midnight
from moderation.presentation.wording import count_messages

HEIGHT = 56
LABELS = 18
"""Pixels: height of the bars' field, and of the line of dates below it."""

NARROW, BESIDE_CHANNELS = 836, 920
"""Width of a card in pixels in a window of 1280, on a narrow page and on a full-width one. A wider card scales it."""

_MIN_PITCH = 7
_MIN_SLOTS = 24
"""Minimum number of slots that fill the width. With fewer, bars would be as wide as they are high."""

_PARTS = 16
"""A slot's width is a multiple of 1/16 pixel: sums are exact, so the last bar ends at the strip's edge."""

_MIN_WIDTH = 70
_GAP_BARS = 3
_MAX_EMPTY_RUN = 18
"""Buckets. Longer gaps (six months) are drawn as a break: an import from 2009 must not push today off the page."""

_LABEL_DISTANCE = 62
_YEAR, _MONTH = DateFormat(pgettext_lazy("date format", "Y")), DateFormat(pgettext_lazy("date format", "M Y"))
_MIN_TOP = 10
"""Messages: fewer are not drawn as tall as the field of the bars."""

_MIN_HEIGHT = 3.0
_UNCOUNTED_HEIGHT = 20.0


@dataclass(frozen=True, slots=True)
class StripBucket:
    """Input for one bar.

    count: messages; None when not counted yet, which is never drawn as 0. highlighted: how many of them the purge
    includes. is_deleted: they have been deleted. restored: how many others it deleted that are there again. failed: how
    many others it could not delete. note: appended to the title.
    kind, title: override the defaults derived from the counts; `highlighted` is then the number of dead rows.
    """

    bucket: int
    count: int | None
    highlighted: int = 0
    is_deleted: bool = False
    restored: int = 0
    failed: int = 0
    note: str = ""
    kind: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar. `y` and `height` cover all of it, from the top: to delete, restored, failed, and kept.

    slot: the width that reacts to the pointer, including the gap to the next bar.
    """

    bucket: int
    x: float
    y: float
    width: float
    slot: float
    height: float
    highlighted_height: float
    restored_height: float
    failed_height: float
    kind: str
    here: bool
    title: str
    count: int | None
    highlighted: int
    restored: int
    failed: int
    first_day: dt.date
    last_day: dt.date

    @property
    def restored_y(self) -> float:
        """Top of the part that was restored."""
        return round(self.y + self.highlighted_height, 1)

    @property
    def failed_y(self) -> float:
        """Top of the part that could not be deleted."""
        return round(self.restored_y + self.restored_height, 1)

    @property
    def kept_y(self) -> float:
        """Top of the part that is kept."""
        return round(self.failed_y + self.failed_height, 1)

    @property
    def kept_height(self) -> float:
        """Height of the part that is kept."""
        parts = self.highlighted_height + self.restored_height + self.failed_height
        return round(max(self.height - parts, 0.0), 1)

    @property
    def at(self) -> str:
        """The day to jump to, as the timeline's `at` parameter takes it."""
        return utc_midnight(self.first_day)

    @property
    def of_purge(self) -> int:
        """Number of messages that a purge includes, deleted, restored, or could not delete."""
        return self.highlighted + self.restored + self.failed

    @property
    def remaining(self) -> int | None:
        """Number of messages kept; None if not counted."""
        return None if self.count is None else max(self.count - self.of_purge, 0)


@dataclass(frozen=True, slots=True)
class Label:
    """A date below the bars."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Everything that the templates draw. Empty when the channel never had a message.

    fills_width: it has enough bars to be scaled to a wider card. top: messages at the top of the axis; None if no
    bucket was counted.
    """

    bars: Sequence[Bar]
    labels: Sequence[Label]
    breaks: Sequence[float]
    width: float
    fills_width: bool = False
    top: int | None = None
    bar_field: int = HEIGHT
    height: int = HEIGHT + LABELS

    @property
    def total(self) -> int:
        """Sum of the counted messages."""
        return sum(bar.count or 0 for bar in self.bars)

    @property
    def is_purge(self) -> bool:
        """True if any message is included, deleted, or restored, or could not be deleted."""
        return any(bar.of_purge for bar in self.bars)

    @property
    def main_bar(self) -> Bar | None:
        """The newest tall bar with many of a purge's messages; None without a purge.

        Many and tall are at least half of the most: of messages spread over years, no bar stands out.
        """
        most = max((bar.of_purge for bar in self.bars), default=0)
        many = [bar for bar in self.bars if bar.of_purge and bar.of_purge * 2 >= most]
        tallest = max((bar.height for bar in many), default=0.0)
        return max((bar for bar in many if bar.height * 2 >= tallest), key=lambda bar: bar.bucket, default=None)

    @property
    def has_deleted(self) -> bool:
        """True if included messages of any bucket have been deleted."""
        return any(bar.kind == "deleted" for bar in self.bars)

    @property
    def has_to_delete(self) -> bool:
        """True if those of any bucket are still to be deleted."""
        return any(bar.kind == "to-delete" for bar in self.bars)

    @property
    def has_restored(self) -> bool:
        """True if any were deleted and are there again."""
        return any(bar.restored for bar in self.bars)

    @property
    def has_failed(self) -> bool:
        """True if any could not be deleted."""
        return any(bar.failed for bar in self.bars)

    @property
    def has_uncounted(self) -> bool:
        """True if any bucket was never counted, so that `total` is a lower bound."""
        return any(bar.count is None for bar in self.bars)


def draw_strip(
    buckets: Iterable[StripBucket],
    *,
    here: range | None = None,
    today: int | None = None,
    width: int = NARROW,
    is_log: bool = False,
) -> Strip:
    """Lay out a channel's strip. here: the buckets on the page. today: the open bucket, always drawn.

    width: pixels to fill, unless there are too few buckets, or so many that the strip scrolls.
    """
    known = {entry.bucket: entry for entry in buckets}
    if not known:
        return Strip((), (), (), 0.0)
    if today is not None:
        known.setdefault(today, StripBucket(today, 0))
    slots = _lay_out_slots(sorted(known))
    pitch = max(width * _PARTS // max(len(slots), _MIN_SLOTS) / _PARTS, _MIN_PITCH)
    counts = [entry.count for entry in known.values() if entry.count is not None]
    peak = max([_MIN_TOP, *counts])
    bars: list[Bar] = []
    breaks: list[float] = []
    for position, bucket in enumerate(slots):
        if bucket is None:
            breaks.append((position + 0.5) * pitch)
        else:
            entry = known.get(bucket, StripBucket(bucket, 0))
            is_here = here is not None and bucket in here
            height = _height_of(entry.count, peak=peak, is_log=is_log)
            bars.append(_draw_bar(entry, x=position * pitch, width=pitch - 2, height=height, here=is_here))
    return Strip(
        tuple(bars),
        _label(bars, pitch=pitch),
        _middles(breaks),
        max(len(slots) * pitch, _MIN_WIDTH),
        fills_width=len(slots) >= _MIN_SLOTS,
        top=peak if any(counts) else None,
    )


def _lay_out_slots(buckets: Sequence[int]) -> list[int | None]:
    """Return the slots from left to right. None is part of a break."""
    slots: list[int | None] = [buckets[0]]
    for before, bucket in pairwise(buckets):
        if bucket - before > _MAX_EMPTY_RUN:
            slots += [None] * _GAP_BARS
        else:
            slots += range(before + 1, bucket)
        slots.append(bucket)
    return slots


def _middles(breaks: Sequence[float]) -> tuple[float, ...]:
    """Return the middle of each break: the second of its three slots."""
    return tuple(breaks[1::_GAP_BARS])


def _draw_bar(entry: StripBucket, *, x: float, width: float, height: float, here: bool) -> Bar:
    first_day, last_day = bucket_days(entry.bucket)
    highlighted = 0.0
    if entry.highlighted:
        # Of a bucket that was not counted, the part is unknown, and the least is drawn.
        share = 0.0 if entry.count is None else min(entry.highlighted / entry.count, 1.0) if entry.count else 1.0
        minimum = min(_MIN_HEIGHT, height / 2)
        highlighted = height * share if share == 1.0 else min(max(height * share, minimum), height - minimum)
    restored = _height_of_part(entry.restored, entry.count, height=height, room=height - highlighted)
    failed = _height_of_part(entry.failed, entry.count, height=height, room=height - highlighted - restored)
    return Bar(
        bucket=entry.bucket,
        x=x,
        y=round(HEIGHT - height, 1),
        width=width,
        slot=width + 2,
        height=round(height, 1),
        highlighted_height=round(max(highlighted, 0.0), 1),
        restored_height=round(restored, 1),
        failed_height=round(failed, 1),
        kind=_kind_of(entry),
        here=here,
        title=entry.title or _title_of(entry, first_day, last_day),
        count=entry.count,
        highlighted=entry.highlighted,
        restored=entry.restored,
        failed=entry.failed,
        first_day=first_day,
        last_day=last_day,
    )


def _height_of_part(part: int, count: int | None, *, height: float, room: float) -> float:
    """Return the height of some messages of a bar, of which the smallest is still visible if there is room."""
    if not part or not count:
        return 0.0
    return max(min(max(height * part / count, min(_MIN_HEIGHT, height / 2)), room), 0.0)


def _height_of(count: int | None, *, peak: int, is_log: bool) -> float:
    if count is None:
        return _UNCOUNTED_HEIGHT
    if count <= 0:
        return _MIN_HEIGHT if is_log else 1.0
    share = math.log1p(count) / math.log1p(peak) if is_log else count / peak
    return _MIN_HEIGHT + (HEIGHT - _MIN_HEIGHT) * share


def _kind_of(entry: StripBucket) -> str:
    if entry.kind:
        return entry.kind
    if entry.highlighted:
        return "deleted" if entry.is_deleted else "to-delete"
    if entry.count is None:
        return "uncounted"
    return "live" if entry.count else "empty"


def _title_of(entry: StripBucket, first: dt.date, last: dt.date) -> str:
    text = gettext("not counted yet") if entry.count is None else count_messages(entry.count)
    if entry.highlighted:
        pattern = (
            ngettext("%(messages)s, %(count)s deleted", "%(messages)s, %(count)s deleted", entry.highlighted)
            if entry.is_deleted
            else ngettext("%(messages)s, %(count)s to delete", "%(messages)s, %(count)s to delete", entry.highlighted)
        )
        text = pattern % {"messages": text, "count": format_number(entry.highlighted)}
    if entry.restored:
        pattern = ngettext("%(messages)s, %(count)s restored", "%(messages)s, %(count)s restored", entry.restored)
        text = pattern % {"messages": text, "count": format_number(entry.restored)}
    if entry.failed:
        pattern = ngettext("%(messages)s, %(count)s failed", "%(messages)s, %(count)s failed", entry.failed)
        text = pattern % {"messages": text, "count": format_number(entry.failed)}
    if entry.note:
        text = gettext("%(messages)s (%(note)s)") % {"messages": text, "note": entry.note}
    return gettext("%(days)s: %(messages)s") % {"days": format_days(first, last), "messages": text}


def _label(bars: Sequence[Bar], *, pitch: float) -> tuple[Label, ...]:
    """Label months in a short strip, quarters in a longer one, years in a long one, without overlaps.

    A label is at the bar that has the first day of its period.
    """
    months = 1 if len(bars) <= 40 else 3 if len(bars) <= 130 else 12
    periods = groupby(bars, key=lambda bar: (bar.last_day.year, (bar.last_day.month - 1) // months))
    firsts = [next(group) for _, group in periods]
    format_period = _YEAR if months == 12 else _MONTH
    last_x = len(bars) * pitch - _LABEL_DISTANCE
    labels = _place_labels(firsts, format_period)
    # A label of a few bars gives way to that of the first whole period, unless they are before a break.
    if len(firsts) > 1 and firsts[1].x <= last_x and firsts[1].x == (firsts[1].bucket - bars[0].bucket) * pitch:
        later = _place_labels(firsts[1:], format_period)
        labels = later if len(later) == len(labels) else labels
    # The last one ends with the strip, or is left out if another one is there.
    if len(labels) > 1 and labels[-1].x > last_x:
        last = labels.pop()
        if last_x - labels[-1].x >= _LABEL_DISTANCE:
            labels.append(Label(last_x, last.text))
    return tuple(labels)


def _place_labels(firsts: Iterable[Bar], format_period: DateFormat) -> list[Label]:
    """Return the labels of periods that have room after the one before. firsts: the first bar of each."""
    labels: list[Label] = []
    for bar in firsts:
        if not labels or bar.x - labels[-1].x >= _LABEL_DISTANCE:
            labels.append(Label(bar.x, format_period(bar.last_day)))
    return labels
