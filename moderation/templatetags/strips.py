"""The bucket strip's bars and the rows of its table as HTML: a channel of ten years has 365 of each."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

from chatstore.models import Channel
from moderation.presentation import formats
from moderation.presentation.html import fill, fill_each
from moderation.presentation.page_urls import url_of
from moderation.presentation.strip import Bar, Strip
from moderation.templatetags.chat import thousands

register = template.Library()

_HERE = SafeString(' aria-current="location"')


@register.simple_tag
def strip_bars(strip: Strip, channel: Channel | None) -> SafeString:
    """Render the bars, each a link to its period if there is a channel."""
    url = _timeline_of(channel)
    last = len(strip.bars) - 1
    return fill_each(
        '<a{} class="{}{}" data-bucket="{}" tabindex="{}" aria-label="{}"{}>\n<title>{}</title>\n'
        '<rect class="slot" x="{}" y="0" width="{}" height="{}"/>\n'
        '<rect class="bar" x="{}" y="{}" width="{}" height="{}" rx="1"/>\n{}'
        '<rect class="mark" x="{}" y="{}" width="{}" height="3"/>\n</a>',
        (
            (
                _link(url, bar), bar.kind, " here" if bar.here else "", bar.bucket, 0 if number == last else -1,
                bar.title, _HERE if bar.here else "", bar.title,
                bar.x, bar.slot, strip.bar_field,
                bar.x, bar.kept_y, bar.width, bar.kept_height, _highlighted(bar) if bar.highlighted else "",
                bar.x, strip.bar_field, bar.width,
            )
            for number, bar in enumerate(strip.bars)
        ),
    )  # fmt: skip


def _highlighted(bar: Bar) -> SafeString:
    return fill(
        '<rect class="highlighted" x="{}" y="{}" width="{}" height="{}" rx="1"/>\n',
        bar.x,
        bar.y,
        bar.width,
        bar.highlighted_height,
    )


@register.simple_tag
def strip_rows(strip: Strip, channel: Channel | None) -> SafeString:
    """Render the same numbers as rows of a table, without periods that have none."""
    url = _timeline_of(channel)
    is_purge = strip.is_purge
    return fill_each(
        '<tr>\n<td>\n<a{}>{}</a>\n</td>\n<td class="num">{}</td>\n{}</tr>',
        (
            (
                _link(url, bar),
                formats.format_days(bar.first_day, bar.last_day),
                thousands(bar.count),
                _cells_of_purge(bar) if is_purge else "",
            )
            for bar in strip.bars
            if bar.count != 0 or bar.highlighted
        ),
    )


def _cells_of_purge(bar: Bar) -> SafeString:
    shown = formats.format_number(bar.highlighted)
    if bar.kind == "deleted":
        shown = ngettext("%(shown)s (deleted)", "%(shown)s (deleted)", bar.highlighted) % {"shown": shown}
    return fill('<td class="num">{}</td>\n<td class="num">{}</td>\n', shown, thousands(bar.remaining))


def _timeline_of(channel: Channel | None) -> str:
    return url_of("timeline", channel.pk) if channel else ""


def _link(url: str, bar: Bar) -> SafeString | str:
    return fill(' href="{}?at={}"', url, bar.at) if url else ""
