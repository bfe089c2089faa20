"""A bucket's and a channel's figures as lines of a table: what, how much, by whose word, since when."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from chatstore.domain.datetimes import say_moment
from chatstore.domain.health import say_bytes
from chatstore.domain.snowflakes import time_of
from chatstore.operations.health.channel_health import (
    NEWEST_PAGE_STATEMENTS,
    NEWEST_PAGE_TOMBSTONES,
    NEWEST_PAGE_US,
    OLD_AFTER,
    SEEN_BY_REPAIR,
    TOMBSTONES,
    BucketHealth,
    ChannelHealth,
)
from chatstore.store.figures import Figure
from moderation.presentation.history_chart import say_milliseconds

LEDGER = "ledger"


@dataclass(frozen=True, slots=True)
class Line:
    """A figure in words. value: empty when nobody measured it. at: when; the ledger itself notes none.

    moment: a value that is a moment. is_old: older than a figure should be, so it needs somebody.
    """

    name: str
    value: str = ""
    source: str = ""
    at: dt.datetime | None = None
    is_old: bool = False
    moment: dt.datetime | None = None


def newest_page_lines(health: ChannelHealth) -> list[Line]:
    """What the channel's newest page costs."""
    found = health.newest_page
    return [
        _line(health, "Newest page", found.get(NEWEST_PAGE_US), _say_us),
        _line(health, "Tombstones it steps over", found.get(NEWEST_PAGE_TOMBSTONES)),
        _line(health, "Buckets it asks", found.get(NEWEST_PAGE_STATEMENTS)),
    ]


def bucket_lines(health: ChannelHealth, found: BucketHealth) -> list[Line]:
    """All that is known of a bucket; of most figures also that they are not."""
    figures = found.figures
    lines = [
        _messages_line(health, found),
        _line(health, "Tombstones, by a read of all of it", figures.get(TOMBSTONES)),
        _line(health, "Tombstones, by the last repair or measuring", figures.get(SEEN_BY_REPAIR)),
        _dead_line(found),
        _line(health, "Size", figures.get("bytes"), say_bytes),
        _line(health, "Its newest page", figures.get("page_us"), _say_us),
        _line(health, "Tombstones in that page", figures.get("page_tombstones")),
        _bounds_line(found),
        _repair_line(health, found),
    ]
    for name, words, say in (
        ("tombstones_apart", "By how many its replicas differ", _say_count),
        ("page_us_before", "That page before the last deletes", _say_us),
        ("authorless", "Rows without an author", _say_count),
    ):
        if name in figures:
            lines.append(_line(health, words, figures[name], say))
    return lines


def _say_count(value: int) -> str:
    return f"{value:,}"


def _say_us(value: int) -> str:
    return say_milliseconds(value / 1000)


def _line(health: ChannelHealth, name: str, figure: Figure | None, say: Callable[[int], str] = _say_count) -> Line:
    if figure is None:
        return Line(name)
    return Line(name, say(figure.value), figure.source, figure.measured_at, health.is_old(figure))


def _messages_line(health: ChannelHealth, found: BucketHealth) -> Line:
    figure = found.messages_figure
    if figure is not None:
        return _line(health, "Messages", figure)
    return Line("Messages") if found.messages is None else Line("Messages", _say_count(found.messages), LEDGER)


def _dead_line(found: BucketHealth) -> Line:
    if found.dead_percent is None:
        return Line("Dead part of what a read steps through")
    return Line(
        "Dead part of what a read steps through", f"{found.dead_percent:.1f} %", "messages and tombstones together"
    )


def _bounds_line(found: BucketHealth) -> Line:
    live, name = found.live, "Something lives"
    if live is None:
        return Line(name, "nowhere: never written", LEDGER) if found.known.is_skipped else Line(name)
    if live.is_nothing:
        return Line(name, "nowhere", LEDGER)
    if live.first is None:
        return Line(name)
    if live.last is None:
        return Line(name, f"from {_say_id(live.first)} on", LEDGER)
    return Line(name, f"{_say_id(live.first)} – {_say_id(live.last)}", LEDGER)


def _say_id(message_id: int) -> str:
    return say_moment(time_of(message_id))


def _repair_line(health: ChannelHealth, found: BucketHealth) -> Line:
    figure = found.repaired
    if figure is None:
        return Line("Last full repair")
    moment = found.repaired_at
    is_old = moment is not None and health.now - moment > OLD_AFTER
    return Line("Last full repair", "began", figure.source, figure.measured_at, is_old, moment)
