"""A bucket's and a channel's figures as lines of a table: name, value, source and age."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from chatstore.domain.snowflakes import time_of
from chatstore.operations.health.channel_health import (
    NEWEST_PAGE_BUCKETS,
    NEWEST_PAGE_TOMBSTONES,
    NEWEST_PAGE_US,
    SEEN_BY_REPAIR,
    STALE_AFTER,
    TOMBSTONES,
    BucketHealth,
    ChannelHealth,
)
from chatstore.store.figures import Figure
from moderation.presentation import formats

LEDGER = "ledger"


@dataclass(frozen=True, slots=True)
class FigureLine:
    """A formatted figure. value: "" if it was never measured, or if it is a time, which is in `time`.

    at: time of the measurement; None for the ledger. is_stale: the figure is outdated.
    """

    name: str
    value: str = ""
    source: str = ""
    at: dt.datetime | None = None
    is_stale: bool = False
    time: dt.datetime | None = None


def newest_page_lines(health: ChannelHealth) -> list[FigureLine]:
    """Return the cost of the channel's newest page."""
    found = health.newest_page
    return [
        _line(health, _("Newest page"), found.get(NEWEST_PAGE_US), _format_us),
        _line(health, _("Tombstones, newest page"), found.get(NEWEST_PAGE_TOMBSTONES)),
        _line(health, _("Buckets, newest page"), found.get(NEWEST_PAGE_BUCKETS)),
    ]


def bucket_lines(health: ChannelHealth, found: BucketHealth) -> list[FigureLine]:
    """Return all figures of a bucket; most of them are listed even if they are unknown."""
    figures = found.figures
    lines = [
        _messages_line(health, found),
        _line(health, _("Tombstones, by a full read"), figures.get(TOMBSTONES)),
        _line(health, _("Tombstones, by the last repair or measurement"), figures.get(SEEN_BY_REPAIR)),
        _dead_line(found),
        _line(health, _("Size"), figures.get("bytes"), formats.format_size),
        _line(health, _("First page of this bucket"), figures.get("page_us"), _format_us),
        _line(health, _("Tombstones in its first page"), figures.get("page_tombstones")),
        _bounds_line(found),
        _repair_line(health, found),
    ]
    for name, label, format_value in (
        ("tombstones_apart", _("Difference between replicas, in tombstones"), formats.format_number),
        ("page_us_before", _("First page before the last deletes"), _format_us),
        ("authorless", _("Rows without an author"), formats.format_number),
    ):
        if name in figures:
            lines.append(_line(health, label, figures[name], format_value))
    return lines


def _format_us(value: int) -> str:
    return formats.format_milliseconds(value / 1000)


def _line(
    health: ChannelHealth, name: str, figure: Figure | None, format_value: Callable[[int], str] = formats.format_number
) -> FigureLine:
    if figure is None:
        return FigureLine(name)
    return FigureLine(name, format_value(figure.value), figure.source, figure.measured_at, health.is_stale(figure))


def _messages_line(health: ChannelHealth, found: BucketHealth) -> FigureLine:
    figure = found.messages_figure
    if figure is not None:
        return _line(health, _("Messages"), figure)
    return (
        FigureLine(_("Messages"))
        if found.messages is None
        else FigureLine(_("Messages"), formats.format_number(found.messages), LEDGER)
    )


def _dead_line(found: BucketHealth) -> FigureLine:
    if found.dead_percent is None:
        return FigureLine(_("Share of tombstones"))
    if not found.messages and not found.known.tombstones:
        return FigureLine(_("Share of tombstones"), "–", _("no messages and no tombstones"))
    return FigureLine(
        _("Share of tombstones"), formats.format_percent(found.dead_percent), _("of messages and tombstones together")
    )


def _bounds_line(found: BucketHealth) -> FigureLine:
    live, name = found.live, _("Contains messages")
    if live is None:
        return FigureLine(name, _("no: never written"), LEDGER) if found.known.is_skipped else FigureLine(name)
    if live.is_empty:
        return FigureLine(name, _("no"), LEDGER)
    if live.first is None:
        return FigureLine(name)
    if live.last is None:
        return FigureLine(name, _("from %(time)s") % {"time": _format_id_time(live.first)}, LEDGER)
    times = {"first": _format_id_time(live.first), "last": _format_id_time(live.last)}
    return FigureLine(name, formats.keep_together(_("%(first)s – %(last)s") % times), LEDGER)


def _format_id_time(message_id: int) -> str:
    return formats.format_datetime(time_of(message_id))


def _repair_line(health: ChannelHealth, found: BucketHealth) -> FigureLine:
    figure = found.repaired
    if figure is None:
        return FigureLine(_("Last full repair"))
    time = found.repaired_at
    is_stale = time is not None and health.now - time > STALE_AFTER
    name = _("Last full repair")
    return FigureLine(name, source=figure.source, at=figure.measured_at, is_stale=is_stale, time=time)
