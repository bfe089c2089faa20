"""Template tag of the table of all channels. A nested template for each row would take most of the page's time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from django import template
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chatstore.domain.buckets import bucket_days
from chatstore.models import ChannelSummary
from chatstore.operations.health.channel_list import ChannelPage, ListedChannel
from moderation.presentation import formats
from moderation.presentation.channel_states import describe_page, explain_state
from moderation.presentation.html import fill, fill_each
from moderation.presentation.page_urls import url_of
from moderation.templatetags.chat import thousands, time_tag, visible
from moderation.templatetags.health import channel_chip, milliseconds, percent_of, size

register = template.Library()

FigureT = TypeVar("FigureT", int, float)


class Labelled(Protocol):
    """A heading of the table."""

    @property
    def label(self) -> str | Promise: ...


OLD = dt.timedelta(days=1)
"""From this age on, a figure's age is shown beside it too: the nightly probe has left it out."""

_FIGURE = '<td role="cell" class="num" data-label="{}" title="{}">{}</td>'
_UNMEASURED = SafeString(' class="unmeasured"')
_ROW = (
    '<tr role="row"{}><th scope="row" role="rowheader"><a href="{}"><bdi>{}</bdi></a>'
    '<span class="quiet small"><bdi>{}</bdi></span></th><td role="cell">{}<span class="quiet small">{}</span>{}</td>'
    + _FIGURE * 5
    + '<td role="cell" data-label="{}">{}</td></tr>'
)


@register.simple_tag
def channel_rows(
    page: ChannelPage, headings: Sequence[Labelled], now: dt.datetime, may_open_purges: bool
) -> SafeString:
    """Render a row for each channel; the age of a figure is its title, and the labels are for narrow screens."""
    labels = [fill("{}", heading.label) for heading in headings[2:]]
    return fill_each(_ROW, (_cells(listed, labels, now, may_open_purges) for listed in page.channels))


def _cells(
    listed: ListedChannel, labels: Sequence[SafeString], now: dt.datetime, may_open_purges: bool
) -> tuple[object, ...]:
    row, channel = listed.row, listed.channel
    tombstones, largest, newest_page, empty, uncovered, last_purge = labels
    figures = (row.tombstones, row.bytes, row.page_us, row.empty_share, row.uncovered_deletes)
    return (
        "" if any(figure is not None for figure in figures) else _UNMEASURED,
        url_of("channel_health", channel.pk),
        visible(str(channel)),
        visible(_("Direct messages") if channel.guild is None else channel.guild.name),
        channel_chip(listed.state, listed.known, listed.severity),
        visible(explain_state(listed.state, listed.known, listed.finding.summary if listed.finding else "")),
        _oldest(row, now),
        tombstones,
        _measured(row.tombstones_at, now, row.tombstones_bucket),
        _figure(row.tombstones, thousands),
        largest,
        _measured(row.bytes_at, now, row.bytes_bucket),
        _figure(row.bytes, size),
        newest_page,
        f"{describe_page(listed.known)} {_measured(row.page_at, now)}" if row.page_at else _measured(None, now),
        _figure(row.page_us, milliseconds),
        empty,
        _buckets(row, now),
        _figure(row.empty_share, lambda share: percent_of(share * 100)),
        uncovered,
        _changed(row.uncovered_at, now),
        _figure(row.uncovered_deletes, lambda number: formats.keep_together(formats.format_count(number, "delete"))),
        last_purge,
        _last_purge(row, now, may_open_purges),
    )


def _figure(value: FigureT | None, format_value: Callable[[FigureT], str]) -> str:
    """Format a figure; unknown ones are a dash, which is not to catch the eye, and words for screen readers."""
    if value is not None:
        return format_value(value)
    return fill('<span class="quiet" aria-hidden="true">–</span><span class="sr">{}</span>', _("not measured yet"))


def _measured(time: dt.datetime | None, now: dt.datetime, bucket: int | None = None) -> str:
    """Return the age of a figure, and the days of the bucket that it is of."""
    if time is None:
        return _("Never measured.")
    age = {"ago": formats.format_ago(time, now), "time": formats.format_exact(time)}
    if bucket is None:
        return _("Measured %(ago)s, on %(time)s.") % age
    return _("In %(days)s, measured %(ago)s, on %(time)s.") % {"days": formats.format_days(*bucket_days(bucket)), **age}


def _oldest(row: ChannelSummary, now: dt.datetime) -> SafeString | str:
    """Return the age of the oldest measurement that the row shows, if it is over a day.

    Figures of the ledger are those of now: whatever changes them has the row refreshed.
    """
    oldest = min((at for at in (row.tombstones_at, row.bytes_at, row.page_at) if at is not None), default=now)
    if now - oldest <= OLD:
        return ""
    text = _("Oldest figure: measured %(ago)s.") % {"ago": formats.format_ago(oldest, now)}
    return fill(' <span class="quiet small">{}</span>', text)


def _buckets(row: ChannelSummary, now: dt.datetime) -> str:
    if row.buckets is None or row.empty_buckets is None or row.refreshed_at is None:
        return _("Never measured.")
    return ngettext(
        "%(empty)s of %(count)s bucket, read %(ago)s, on %(time)s.",
        "%(empty)s of %(count)s buckets, read %(ago)s, on %(time)s.",
        row.buckets,
    ) % {
        "empty": formats.format_number(row.empty_buckets),
        "count": formats.format_number(row.buckets),
        "ago": formats.format_ago(row.refreshed_at, now),
        "time": formats.format_exact(row.refreshed_at),
    }


def _changed(time: dt.datetime | None, now: dt.datetime) -> str:
    if time is None:
        return _("Never counted.")
    return _("Counted after each purge and every five minutes, changed %(ago)s, on %(time)s.") % {
        "ago": formats.format_ago(time, now),
        "time": formats.format_exact(time),
    }


def _last_purge(row: ChannelSummary, now: dt.datetime, may_open_purges: bool) -> SafeString:
    if row.last_purge_id is None or row.last_purged_at is None:
        return fill('<span class="quiet">{}</span>', _("none"))
    when = time_tag(row.last_purged_at, formats.format_ago(row.last_purged_at, now))
    return fill('<a href="{}">{}</a>', url_of("purge", row.last_purge_id), when) if may_open_purges else when
