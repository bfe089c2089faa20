"""A bucket's and a channel's figures as lines of a table: name, value, source and age."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from django.utils.translation import gettext as _

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
from moderation.presentation import formats

LEDGER = "ledger"


@dataclass(frozen=True, slots=True)
class Line:
    """A formatted figure. value: "" if it was never measured. at: time of the measurement; None for the ledger.

    moment: set for a value that is a time. is_old: the figure is outdated.
    """

    name: str
    value: str = ""
    source: str = ""
    at: dt.datetime | None = None
    is_old: bool = False
    moment: dt.datetime | None = None


def newest_page_lines(health: ChannelHealth) -> list[Line]:
    """Return the cost of the channel's newest page."""
    found = health.newest_page
    return [
        _line(health, _("Newest page"), found.get(NEWEST_PAGE_US), _say_us),
        _line(health, _("Tombstones scanned"), found.get(NEWEST_PAGE_TOMBSTONES)),
        _line(health, _("Buckets read"), found.get(NEWEST_PAGE_STATEMENTS)),
    ]


def bucket_lines(health: ChannelHealth, found: BucketHealth) -> list[Line]:
    """Return all figures of a bucket; most of them are listed even if they are unknown."""
    figures = found.figures
    lines = [
        _messages_line(health, found),
        _line(health, _("Tombstones, by a full read"), figures.get(TOMBSTONES)),
        _line(health, _("Tombstones, by the last repair or measurement"), figures.get(SEEN_BY_REPAIR)),
        _dead_line(found),
        _line(health, _("Size"), figures.get("bytes"), formats.format_size),
        _line(health, _("Newest page"), figures.get("page_us"), _say_us),
        _line(health, _("Tombstones in the newest page"), figures.get("page_tombstones")),
        _bounds_line(found),
        _repair_line(health, found),
    ]
    for name, words, say in (
        ("tombstones_apart", _("Difference between replicas, in tombstones"), _say_count),
        ("page_us_before", _("Newest page before the last deletes"), _say_us),
        ("authorless", _("Rows without an author"), _say_count),
    ):
        if name in figures:
            lines.append(_line(health, words, figures[name], say))
    return lines


def _say_count(value: int) -> str:
    return formats.format_number(value)


def _say_us(value: int) -> str:
    return formats.format_milliseconds(value / 1000)


def _line(health: ChannelHealth, name: str, figure: Figure | None, say: Callable[[int], str] = _say_count) -> Line:
    if figure is None:
        return Line(name)
    return Line(name, say(figure.value), figure.source, figure.measured_at, health.is_old(figure))


def _messages_line(health: ChannelHealth, found: BucketHealth) -> Line:
    figure = found.messages_figure
    if figure is not None:
        return _line(health, _("Messages"), figure)
    return Line(_("Messages")) if found.messages is None else Line(_("Messages"), _say_count(found.messages), LEDGER)


def _dead_line(found: BucketHealth) -> Line:
    if found.dead_percent is None:
        return Line(_("Share of tombstones"))
    return Line(
        _("Share of tombstones"), formats.format_percent(found.dead_percent), _("of messages and tombstones together")
    )


def _bounds_line(found: BucketHealth) -> Line:
    live, name = found.live, _("Contains messages")
    if live is None:
        return Line(name, _("no: never written"), LEDGER) if found.known.is_skipped else Line(name)
    if live.is_nothing:
        return Line(name, _("no"), LEDGER)
    if live.first is None:
        return Line(name)
    if live.last is None:
        return Line(name, _("from %(time)s") % {"time": _say_id(live.first)}, LEDGER)
    return Line(name, _("%(first)s – %(last)s") % {"first": _say_id(live.first), "last": _say_id(live.last)}, LEDGER)


def _say_id(message_id: int) -> str:
    return formats.format_exact(time_of(message_id))


def _repair_line(health: ChannelHealth, found: BucketHealth) -> Line:
    figure = found.repaired
    if figure is None:
        return Line(_("Last full repair"))
    moment = found.repaired_at
    is_old = moment is not None and health.now - moment > OLD_AFTER
    return Line(_("Last full repair"), _("started"), figure.source, figure.measured_at, is_old, moment)
