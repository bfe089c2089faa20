"""Health in words: a bucket's state, a figure with its source and age.

What stands on a page once for each bucket is put together here: two hundred times, a template's own
tags would take most of the page's time.
"""

from __future__ import annotations

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from chatstore.domain.buckets import days_in_words
from chatstore.domain.health import BucketState, say_bytes
from chatstore.domain.runs import Severity
from chatstore.models import Channel
from chatstore.operations.health.channel_health import BucketHealth, ChannelHealth
from chatstore.store.figures import Figure
from moderation.presentation.health_strip import STATE_WORDS
from moderation.presentation.history_chart import say_milliseconds
from moderation.presentation.strip import Bar, Strip
from moderation.templatetags.chat import ago, exact, say_ago, thousands

register = template.Library()

_CLASSES = {BucketState.TOMBSTONES: "needs", BucketState.HEAVY: "needs", BucketState.OPEN: "busy"}


@register.simple_tag
def bucket_chip(bucket: BucketHealth) -> SafeString:
    """A bucket's state as a coloured word; beyond the alarm it says so."""
    words = STATE_WORDS[bucket.state]
    if bucket.severity == Severity.RED:
        words += ", over the alarm"
    return format_html('<span class="chip {}">{}</span>', _CLASSES.get(bucket.state, ""), words)


@register.filter
def milliseconds(microseconds: int | None) -> str:
    """2410 → "2.4 ms"; None → "not known"."""
    return "not known" if microseconds is None else say_milliseconds(microseconds / 1000)


@register.filter
def size(count: int | None) -> str:
    """Bytes in decimal units: "1.2 MB"; None → "not known"."""
    return "not known" if count is None else say_bytes(count)


@register.simple_tag
def since_when(health: ChannelHealth, figure: Figure | str | None) -> SafeString:
    """A figure's source and age: "probe, 3 hours ago"; amber once it is over 26 hours old."""
    # A template's name for a figure that there is none of is an empty text.
    if not isinstance(figure, Figure):
        return format_html("{}", "never measured")
    return format_html(
        '{}, <time class="{}" datetime="{}" title="{}">{}</time>',
        figure.source,
        "old" if health.is_old(figure) else "",
        figure.measured_at.isoformat(),
        exact(figure.measured_at),
        say_ago(figure.measured_at, health.now),
    )


@register.simple_tag
def health_bars(strip: Strip, channel: Channel) -> SafeString:
    """The strip's bars, each a link to its bucket."""
    base = reverse("channel_health", args=[channel.pk])
    last = len(strip.bars) - 1
    return format_html_join(
        "\n",
        '<a href="{}{}/" class="is-{}{}" tabindex="{}" aria-label="{}"{}><title>{}</title>'
        '<rect class="slot" x="{}" y="0" width="{}" height="{}"/>'
        '<rect class="bar" x="{}" y="{}" width="{}" height="{}" rx="1"/>{}'
        '<rect class="mark" x="{}" y="{}" width="{}" height="3"/></a>',
        (
            (
                base, bar.bucket, bar.kind, " here" if bar.here else "", 0 if number == last else -1, bar.title,
                _CURRENT if bar.here else "", bar.title,
                bar.x, bar.slot, strip.bar_field,
                bar.x, bar.grey_y, bar.width, bar.grey_height, _dead_part(bar),
                bar.x, strip.bar_field, bar.width,
            )
            for number, bar in enumerate(strip.bars)
        ),
    )  # fmt: skip


_CURRENT = mark_safe(' aria-current="true"')


def _dead_part(bar: Bar) -> SafeString | str:
    if not bar.going:
        return ""
    return format_html(
        '<rect class="dead" x="{}" y="{}" width="{}" height="{}" rx="1"/>', bar.x, bar.y, bar.width, bar.red_height
    )


@register.simple_tag
def bucket_rows(health: ChannelHealth, channel: Channel) -> SafeString:
    """The same as rows of a table: a row for each bucket that was ever written."""
    base = reverse("channel_health", args=[channel.pk])
    return format_html_join(
        "\n",
        '<tr><td class="nowrap"><a href="{}{}/">{}</a></td><td>{}</td><td class="num">{}</td><td class="num">{}</td>'
        '<td class="num">{}</td><td class="num">{}</td><td class="num">{}</td><td class="nowrap">{}</td>'
        '<td class="nowrap">{}</td></tr>',
        (
            (
                base, bucket.bucket, days_in_words(bucket.first_day, bucket.last_day), bucket_chip(bucket),
                thousands(bucket.messages), thousands(bucket.known.tombstones), percent_of(bucket.dead_percent),
                size(bucket.known.bytes), milliseconds(bucket.page_us), since_when(health, bucket.latest),
                ago(bucket.repaired_at) if bucket.repaired_at else "not known",
            )
            for bucket in health.buckets
            if bucket.was_written
        ),
    )  # fmt: skip


def percent_of(value: float | None) -> str:
    """25.04 → "25.0 %"; None → "not known"."""
    return "not known" if value is None else f"{value:.1f} %"
