"""Context of the strips that show when the messages of a purge were posted, with their zoom."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel
from moderation.domain.axis_times import round_times
from moderation.domain.outcomes import DeletionStatus
from moderation.domain.zoom import DAY, HOUR, Window, Zoom, closer, window_at, window_of_all
from moderation.models import Purge
from moderation.operations.preview.deleted_since import DeletedSince
from moderation.operations.preview.manifest_summary import MAX_CHANNELS, BucketEntry, Summary, list_channels
from moderation.operations.preview.time_strips import MAX_ROWS, TimeRow, count_over_time
from moderation.presentation.formats import (
    format_axis_day,
    format_clock,
    format_month,
    format_number,
    format_short_day,
    format_span,
    format_spans,
)
from moderation.presentation.wording import count_messages

_LABELS = {
    Zoom.ALL: gettext_lazy("All"),
    Zoom.YEAR: gettext_lazy("Year"),
    Zoom.MONTH: gettext_lazy("Month"),
    Zoom.DAY: gettext_lazy("Day"),
    Zoom.HOUR: gettext_lazy("Hour"),
}

HEIGHT = 40
"""Pixels of the tallest bar."""

STATUS_LABELS = {
    DeletionStatus.TO_DELETE: gettext_lazy("to delete"),
    DeletionStatus.DELETED: gettext_lazy("deleted"),
    DeletionStatus.RESTORED: gettext_lazy("restored"),
    DeletionStatus.FAILED: gettext_lazy("failed"),
    DeletionStatus.KEPT: gettext_lazy("not deleted"),
}
"""Statuses of messages in the legend, the titles of bars, and the table."""

_MIN_HEIGHT = 2.0
_WIDTH = 100.0
"""Horizontal positions are percentages, so that a strip is as wide as its card."""


_NARROW_AXIS, _WIDE_AXIS = 300, 720
"""Least pixels of an axis on a phone, and of one that counts as wide: the style sheet has the same."""

_CHARACTER_PIXELS, _LABEL_MARGIN, _LABEL_GAP = 6.5, 4, 12
"""Pixels: of a character of a label, between a tick and its label, and least from one label to the next if no tick is
between them."""


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the zoom, as a link."""

    name: str
    label: str
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class TimeBar:
    """A slot with messages, as a link to a closer view of it, unless url is "". x, width: percentages.

    parts: (status, y, height) of each from the top, in pixels. counts: of the statuses of all bars.
    """

    time: str
    count: int
    counts: Sequence[int]
    title: str
    url: str
    x: float
    width: float
    parts: Sequence[tuple[DeletionStatus, float, float]]


@dataclass(frozen=True, slots=True)
class ChannelTimes:
    """A row: a channel and its bars."""

    channel: Channel
    bars: Sequence[TimeBar]
    total: int


class Side(StrEnum):
    """Where the label of a tick has room: a tick whose label has none is hidden."""

    AFTER = "after"
    BEFORE = "before"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class Tick:
    """A time below the bars. x: percentage. narrow, wide: where its label is, by the width of the axis."""

    x: float
    text: str
    narrow: Side
    wide: Side


@dataclass(frozen=True, slots=True)
class ChannelPages:
    """Which channels of a purge are drawn, those with the most messages first.

    first, last: their places, from 1. more: how many are drawn at more_url besides the largest ones; 0 if these are
    all. previous_url, next_url: of the pages beside this one; "" if there is none.
    """

    first: int
    last: int
    count: int
    more: int = 0
    more_url: str = ""
    previous_url: str = ""
    next_url: str = ""


@dataclass(frozen=True, slots=True)
class Times:
    """Everything that the template draws.

    title: the window in words. first_at, last_at: of all messages of the purge, if the window shows them all, in place
    of the title. earlier, later: URLs of the windows beside it; "" if the purge has no messages there.
    most: messages in the fullest slot. statuses: those of any message shown, with their labels. channels: the pages of
    the purge's channels.
    """

    rows: Sequence[ChannelTimes]
    ticks: Sequence[Tick]
    levels: Sequence[Level]
    title: str
    earlier: str
    later: str
    most: int
    total: int
    channels: ChannelPages
    is_exact: bool
    statuses: Sequence[tuple[DeletionStatus, str | Promise]]
    first_at: dt.datetime | None = None
    last_at: dt.datetime | None = None
    height: int = HEIGHT


def describe_times(
    purge: Purge,
    manifest: Summary,
    query: Mapping[str, str],
    *,
    find_channels: Callable[[Sequence[int]], Mapping[int, Channel]],
    entries: Sequence[BucketEntry] | None = None,
    deleted_since: DeletedSince | None,
) -> Times | None:
    """Return the strips of the largest channels; None if there is nothing to show.

    query: `zoom` and `at`, a time in the window, as Unix seconds; `rows`, the number of channels before those of a
    whole page; anything else means only the largest. find_channels: returns those that the viewer may see. entries: of
    the manifest in its channels, if they are read already. deleted_since: messages of a preview that other purges have
    deleted, which are not drawn; None: not known. Raises `BadInput`.
    """
    if manifest.first_at is None or manifest.last_at is None:
        return None
    start = _read_start(query, manifest.channel_count)
    channel_ids = _choose_channels(purge, manifest, start)
    known = find_channels(channel_ids)
    shown = [known[channel_id] for channel_id in channel_ids if channel_id in known]
    if not shown and not start:
        return None
    zoom, at, window = _read_window(query, manifest.first_at, manifest.last_at)
    found = count_over_time(
        purge, window, [channel.pk for channel in shown], entries=entries, without=deleted_since or {}
    )
    totals = [[slot.total() for slot in row.counts] for row in found.rows]
    most = max((max(numbers, default=0) for numbers in totals), default=0)
    url_of, statuses = partial(_url, start=start), _statuses_in(found.rows)
    names, into = _name_slots(totals, found.edges), closer(zoom, window)
    rows = [
        ChannelTimes(
            channel,
            _draw(row, found.edges, names, statuses=statuses, most=most, url_of=partial(url_of, into)),
            sum(numbers),
        )
        for channel, row, numbers in zip(shown, found.rows, totals, strict=True)
    ]
    if zoom is Zoom.ALL and most:
        # From here the levels lead to the fullest slot.
        at = found.edges[max(totals, key=max).index(most)]
    before, after = window.start - dt.timedelta(seconds=1), window.end
    return Times(
        rows=rows,
        ticks=list_ticks(window),
        levels=[Level(level.value, str(label), url_of(level, at), level is zoom) for level, label in _LABELS.items()],
        title=_title(window),
        earlier=url_of(zoom, before) if zoom is not Zoom.ALL and manifest.first_at < window.start else "",
        later=url_of(zoom, after) if zoom is not Zoom.ALL and manifest.last_at >= window.end else "",
        most=most,
        total=sum(row.total for row in rows),
        channels=_describe_pages(
            start, len(channel_ids), manifest.channel_count, url_of=lambda number: _url(zoom, at, start=number)
        ),
        is_exact=found.is_exact,
        statuses=[
            (status, gettext("found") if deleted_since is None else STATUS_LABELS[status]) for status in statuses
        ],
        first_at=manifest.first_at if zoom is Zoom.ALL else None,
        last_at=manifest.last_at if zoom is Zoom.ALL else None,
    )


def _read_window(
    query: Mapping[str, str], first_at: dt.datetime, last_at: dt.datetime
) -> tuple[Zoom, dt.datetime, Window]:
    """Return the level of the zoom, the time in the window, and the window. first_at, last_at: of all messages."""
    zoom, at = _read_query(query, last_at)
    at = min(max(at, first_at), last_at)
    window = window_of_all(first_at, last_at) if zoom is Zoom.ALL else window_at(zoom, timezone.localtime(at))
    return zoom, at, window


def _statuses_in(rows: Iterable[TimeRow]) -> list[DeletionStatus]:
    """Return the statuses of any message in the bars."""
    return [status for status in DeletionStatus if any(slot[status] for row in rows for slot in row.counts)]


def _read_query(query: Mapping[str, str], default: dt.datetime) -> tuple[Zoom, dt.datetime]:
    try:
        zoom = Zoom(query.get("zoom", Zoom.ALL))
        at = dt.datetime.fromtimestamp(int(query["at"]), tz=dt.UTC) if "at" in query else default
    except (ValueError, OverflowError, OSError):
        raise BadInput(_("This is not a time to zoom to. Use the links of the chart.")) from None
    return zoom, at


def _read_start(query: Mapping[str, str], channel_count: int) -> int | None:
    """Return the number of channels before the page, at most as many as pages fill; None: only the largest channels."""
    try:
        start = min(max(int(query["rows"]), 0), max(channel_count - 1, 0))
    except (KeyError, ValueError):
        return None
    return start - start % MAX_CHANNELS


def _choose_channels(purge: Purge, manifest: Summary, start: int | None) -> list[int]:
    """Return the channels of a page, those with the most messages first. The summary has those of the first page."""
    if start:
        return list_channels(purge, start=start)
    return [one.channel_id for one in manifest.channels[: MAX_ROWS if start is None else MAX_CHANNELS]]


def _describe_pages(start: int | None, drawn: int, count: int, *, url_of: Callable[[int], str]) -> ChannelPages:
    if start is None:
        more = min(count, MAX_CHANNELS) - drawn
        return ChannelPages(1, drawn, count, more=more, more_url=url_of(0) if more else "")
    end = start + drawn
    return ChannelPages(
        start + 1,
        end,
        count,
        previous_url=url_of(start - MAX_CHANNELS) if start else "",
        next_url=url_of(end) if end < count else "",
    )


def _url(zoom: Zoom, at: dt.datetime, *, start: int | None) -> str:
    window = "" if zoom is Zoom.ALL else f"&at={int(at.timestamp())}"
    rows = "" if start is None else f"&rows={start}"
    return f"?zoom={zoom.value}{window}{rows}#times"


def _name_slots(totals: Iterable[Sequence[int]], edges: Sequence[dt.datetime]) -> dict[int, str]:
    """Return the times of all slots that have messages."""
    slots = {slot for numbers in totals for slot, count in enumerate(numbers) if count}
    return format_spans(edges, slots)


def _draw(
    row: TimeRow,
    edges: Sequence[dt.datetime],
    names: Mapping[int, str],
    *,
    statuses: Sequence[DeletionStatus],
    most: int,
    url_of: Callable[[dt.datetime], str],
) -> list[TimeBar]:
    length = (edges[-1] - edges[0]).total_seconds()
    bars = []
    # Many slots have as many messages as others.
    count_in_words = cache(count_messages)
    labels = {status: STATUS_LABELS[status] for status in statuses}
    for slot, by_status in enumerate(row.counts):
        count = by_status.total()
        if not count:
            continue
        start, end = edges[slot], edges[slot + 1]
        bars.append(
            TimeBar(
                time=names[slot],
                count=count,
                counts=[by_status[status] for status in statuses],
                title=f"{names[slot]}: {describe_counts(by_status, count_in_words(count), labels)}",
                url=url_of(start),
                x=round((start - edges[0]).total_seconds() / length * _WIDTH, 3),
                width=round((end - start).total_seconds() / length * _WIDTH, 3),
                parts=stack_parts(by_status, most=most, height=HEIGHT),
            )
        )
    return bars


def stack_parts(
    counts: Counter[DeletionStatus], *, most: int, height: int
) -> list[tuple[DeletionStatus, float, float]]:
    """Return (status, y, height) of a bar's parts, from the top. Even one message of a thousand is visible.

    most: messages of the tallest bar, whose height is given, in pixels.
    """
    parts: list[tuple[DeletionStatus, float, float]] = []
    below = float(height)
    for status in reversed(DeletionStatus):
        if counts[status]:
            part = round(max(height * counts[status] / most, _MIN_HEIGHT), 1)
            below = max(below - part, 0.0)
            parts.insert(0, (status, round(below, 1), part))
    return parts


def describe_counts(
    counts: Counter[DeletionStatus], messages: str, labels: Mapping[DeletionStatus, str | Promise]
) -> str:
    """Return "5 messages (3 deleted, 2 restored)"; without the statuses if all bars have the same one.

    labels: of the statuses of all bars.
    """
    if len(labels) == 1:
        return messages
    parts = [
        gettext("%(count)s %(status)s") % {"count": format_number(counts[status]), "status": label}
        for status, label in labels.items()
        if counts[status]
    ]
    return gettext("%(messages)s (%(parts)s)") % {"messages": messages, "parts": ", ".join(parts)}


def list_ticks(window: Window) -> list[Tick]:
    """Return the ticks of a window. The first, at least, is shown at any width."""
    length = window.end - window.start
    times = round_times(window.start, window.end, timezone.get_current_timezone(), last_share=1)
    labels = [((time - window.start) / length, _format_tick(time, length)) for time in times]
    sides = zip(_sides(labels, _NARROW_AXIS), _sides(labels, _WIDE_AXIS), strict=True)
    return [Tick(round(x * _WIDTH, 3), text, *each) for (x, text), each in zip(labels, sides, strict=True)]


def _sides(labels: Iterable[tuple[float, str]], pixels: int) -> Iterator[Side]:
    """Yield the side of each label on an axis of that width. labels: (share of the axis, text), from the left."""
    free = 0.0
    for share, text in labels:
        x, width = share * pixels, len(text) * _CHARACTER_PIXELS + _LABEL_MARGIN
        if free <= x and x + width <= pixels:
            yield Side.AFTER
            free = x + width
        elif free == 0 or free + _LABEL_GAP <= x - width:
            yield Side.BEFORE
            free = x
        else:
            yield Side.HIDDEN


def _format_tick(time: dt.datetime, length: dt.timedelta) -> str:
    """Return a clock time, except of the midnights of an axis over several days."""
    local = timezone.localtime(time)
    if length <= DAY + HOUR or (local.hour, local.minute) != (0, 0):
        return format_clock(time)
    return format_axis_day(local.date()) if length <= 366 * DAY else format_short_day(local.date())


def _title(window: Window) -> str:
    middle = timezone.localtime(window.start + (window.end - window.start) / 2)
    match window.zoom:
        case Zoom.YEAR:
            return str(middle.year)
        case Zoom.MONTH:
            return format_month(middle.date())
        case Zoom.DAY:
            return format_short_day(middle)
        case Zoom.HOUR | Zoom.ALL:
            return format_span(window.start, window.end)
