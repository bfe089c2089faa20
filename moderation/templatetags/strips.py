"""Bars of strips and the rows of their tables as HTML: a channel of ten years has 365 of each."""

from __future__ import annotations

from collections.abc import Sequence

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

from chatstore.models import Channel
from moderation.domain.outcomes import DeletionStatus
from moderation.presentation import formats
from moderation.presentation.activity import BASE, ActivitySpan, PostsSpan
from moderation.presentation.html import fill, fill_each
from moderation.presentation.page_urls import url_of
from moderation.presentation.strip import Bar, Strip
from moderation.templatetags.chat import thousands, visible
from moderation.views.purge_times import TimeBar, Times
from moderation.views.raid_page import RaidTimes

register = template.Library()

_MAX_GAP = 0.3
"""Percentage of a strip's width."""

# Without a link, the label of an element needs a role.
_FIGURE = SafeString(' role="img"')
_HERE = SafeString(' aria-current="location"')
_MAIN = SafeString(" data-main")


@register.simple_tag
def strip_bars(strip: Strip, channel: Channel | None) -> SafeString:
    """Render the bars, each a link to its period if there is a channel."""
    url = _timeline_of(channel)
    last, main = len(strip.bars) - 1, strip.main_bar
    return fill_each(
        '<a{} class="{}{}" data-bucket="{}" tabindex="{}" aria-label="{}"{}{}>\n<title>{}</title>\n'
        '<rect class="slot" x="{}" y="0" width="{}" height="{}"/>\n'
        '<rect class="bar" x="{}" y="{}" width="{}" height="{}" rx="1"/>\n{}'
        '<rect class="mark" x="{}" y="{}" width="{}" height="3"/>\n</a>',
        (
            (
                _link(url, bar), bar.kind, " here" if bar.here else "", bar.bucket, 0 if number == last else -1,
                bar.title, _HERE if bar.here else "", _MAIN if bar is main else "", bar.title,
                bar.x, bar.slot, strip.bar_field,
                bar.x, bar.kept_y, bar.width, bar.kept_height, _parts_of_purge(bar),
                bar.x, strip.bar_field, bar.width,
            )
            for number, bar in enumerate(strip.bars)
        ),
    )  # fmt: skip


def _parts_of_purge(bar: Bar) -> SafeString:
    parts = (
        (bar.highlighted, bar.kind, bar.y, bar.highlighted_height),
        (bar.restored, DeletionStatus.RESTORED, bar.restored_y, bar.restored_height),
        (bar.failed, DeletionStatus.FAILED, bar.failed_y, bar.failed_height),
    )
    return fill_each(
        '<rect class="part is-{}" x="{}" y="{}" width="{}" height="{}" rx="1"/>\n',
        ((status, bar.x, y, bar.width, height) for count, status, y, height in parts if count),
        "",
    )


@register.simple_tag
def strip_rows(strip: Strip, channel: Channel | None) -> SafeString:
    """Render the same numbers as rows of a table, without periods that have none."""
    url = _timeline_of(channel)
    is_purge, has_restored, has_failed = strip.is_purge, strip.has_restored, strip.has_failed
    return fill_each(
        '<tr>\n<td>\n<a{}>{}</a>\n</td>\n<td class="num">{}</td>\n{}</tr>',
        (
            (
                _link(url, bar),
                formats.format_days(bar.first_day, bar.last_day),
                thousands(bar.count),
                _cells_of_purge(bar, has_restored=has_restored, has_failed=has_failed) if is_purge else "",
            )
            for bar in strip.bars
            if bar.count != 0 or bar.highlighted or bar.restored or bar.failed
        ),
    )


@register.simple_tag
def time_bars(bars: Sequence[TimeBar], height: int) -> SafeString:
    """Render the bars of a channel, each a link to a closer view if it has one."""
    last = len(bars) - 1
    return fill_each(
        '<a{} tabindex="{}" aria-label="{}">\n<title>{}</title>\n'
        '<rect class="slot" x="{}%" y="0" width="{}%" height="{}"/>\n'
        "{}</a>",
        (
            (
                fill(' href="{}"', bar.url) if bar.url else _FIGURE, 0 if number == last else -1, bar.title, bar.title,
                bar.x, bar.width, height, _parts(bar),
            )
            for number, bar in enumerate(bars)
        ),
    )  # fmt: skip


def _parts(bar: TimeBar) -> SafeString:
    # Between few wide bars a gap in proportion would look like time without messages.
    width = round(bar.width - min(bar.width * 0.14, _MAX_GAP), 3)
    return fill_each(
        '<rect class="part is-{}" x="{}%" y="{}" width="{}%" height="{}"/>\n',
        ((status, bar.x, y, width, height) for status, y, height in bar.parts),
    )


@register.simple_tag
def time_rows(times: Times | RaidTimes) -> SafeString:
    """Render the same numbers as rows of a table."""
    has_several = len(times.rows) > 1
    named = [
        (fill("<td><bdi>{}</bdi></td>\n", visible(row.channel.full_name)) if has_several else "", row.bars)
        for row in times.rows
    ]
    return fill_each(
        '<tr>\n{}<td>\n{}\n</td>\n<td class="num">{}</td>\n{}</tr>',
        (
            (name, _time_of(bar), formats.format_number(bar.count), _cells_by_status(bar, times))
            for name, bars in named
            for bar in bars
        ),
    )


def _time_of(bar: TimeBar) -> SafeString | str:
    return fill('<a href="{}">{}</a>', bar.url, bar.time) if bar.url else bar.time


def _cells_by_status(bar: TimeBar, times: Times | RaidTimes) -> SafeString | str:
    if len(times.statuses) < 2:
        return ""
    return fill_each('<td class="num">{}</td>\n', ((formats.format_number(count),) for count in bar.counts))


@register.simple_tag
def activity_bars(spans: Sequence[ActivitySpan | PostsSpan], timeline_url: str) -> SafeString:
    """Render the times at which a user posted in a channel, each a link to its beginning."""
    last = len(spans) - 1
    titled = [(span, span.title) for span in spans]
    return fill_each(
        '<a href="{}?at={}" class="live" tabindex="{}" aria-label="{}">\n<title>{}</title>\n'
        '<rect class="slot" x="{}" y="0" width="{}" height="18"/>\n'
        '{}\n</a>',
        (
            (
                timeline_url, span.at, 0 if number == last else -1, title, title, span.x, span.width,
                fill_each(
                    '<rect class="bar" x="{}" y="{}" width="{}" height="{}"/>',
                    ((bar.x, round(BASE - bar.height, 1), bar.width, bar.height) for bar in span.bars),
                ),
            )
            for number, (span, title) in enumerate(titled)
        ),
    )  # fmt: skip


def _cells_of_purge(bar: Bar, *, has_restored: bool, has_failed: bool) -> SafeString:
    shown = formats.format_number(bar.highlighted)
    if bar.kind == "deleted":
        shown = ngettext("%(shown)s (deleted)", "%(shown)s (deleted)", bar.highlighted) % {"shown": shown}
    numbers = [shown]
    for count, has_any in ((bar.restored, has_restored), (bar.failed, has_failed)):
        if has_any:
            numbers.append(formats.format_number(count))
    numbers.append(thousands(bar.remaining))
    return fill_each('<td class="num">{}</td>\n', ((number,) for number in numbers), "")


def _timeline_of(channel: Channel | None) -> str:
    return url_of("timeline", channel.pk) if channel else ""


def _link(url: str, bar: Bar) -> SafeString | str:
    return fill(' href="{}?at={}"', url, bar.at) if url else ""
