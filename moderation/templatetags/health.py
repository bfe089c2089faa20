"""Template tags of channel health: a bucket's state, and a figure with its source and age.

Markup that a page repeats for each bucket is built here: for two hundred buckets, a template's own
tags would take most of the page's time.
"""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from chatstore.domain.health import SOURCE_LABELS, BucketState, ChannelState, KnownChannel
from chatstore.domain.runs import Severity
from chatstore.models import Channel
from chatstore.operations.health.channel_health import BucketHealth, ChannelHealth
from chatstore.store.figures import Figure
from moderation.presentation import formats
from moderation.presentation.channel_states import label_state
from moderation.presentation.health_strip import STATE_LABELS, UNWRITTEN
from moderation.presentation.html import fill, fill_each
from moderation.presentation.page_urls import url_of
from moderation.presentation.strip import Bar, Strip
from moderation.presentation.texts import translate
from moderation.templatetags.chat import ago, exact, format_ago, thousands

register = template.Library()

_CHANNEL_CLASSES = {ChannelState.HEALTHY: "done", ChannelState.UNKNOWN: ""}
_CLASSES = {BucketState.TOMBSTONES: "warning", BucketState.HEAVY: "warning", BucketState.OPEN: "busy"}


@register.simple_tag
def bucket_chip(bucket: BucketHealth) -> SafeString:
    """Render a bucket's state as a coloured label, with a note if it is critical."""
    return _state_chip(_CLASSES.get(bucket.state, ""), str(STATE_LABELS[bucket.state]), bucket.severity)


@register.simple_tag
def channel_chip(state: ChannelState, known: KnownChannel, severity: Severity | None) -> SafeString:
    """Render a channel's state as a coloured label, with a note if a bucket is critical."""
    label = label_state(state, known)
    # The labels begin sentences elsewhere.
    return _state_chip(_CHANNEL_CLASSES.get(state, "warning"), label[:1].lower() + label[1:], severity)


def _state_chip(css: str, label: str, severity: Severity | None) -> SafeString:
    if severity == Severity.CRITICAL:
        css, label = "critical", _("%(state)s, critical") % {"state": label}
    return fill('<span class="chip {}">{}</span>', css, label)


@register.filter
def source_name(source: str) -> str:
    """Return the label of a figure's source; one that this version does not know is shown as it is."""
    return translate(SOURCE_LABELS.get(source, source))


@register.filter
def milliseconds(microseconds: int | None) -> str:
    """2410 → "2.4 ms"; None → "unknown"."""
    if microseconds is None:
        return formats.unknown()
    return formats.keep_together(formats.format_milliseconds(microseconds / 1000))


@register.filter
def size(count: int | None) -> str:
    """Format bytes in decimal units: "1.2 MB"; None → "unknown"."""
    return formats.unknown() if count is None else formats.keep_together(formats.format_size(count))


@register.simple_tag
def since_when(health: ChannelHealth, figure: Figure | str | None) -> SafeString:
    """Render a figure's source and age: "probe, 3 hours ago"; highlighted once it is over 26 hours old."""
    # A template passes "" for a missing figure.
    if not isinstance(figure, Figure):
        return fill("{}", _("never measured"))
    return fill(
        '{}, <time class="{}" datetime="{}" title="{}">{}</time>',
        source_name(figure.source),
        "old" if health.is_stale(figure) else "",
        figure.measured_at.isoformat(),
        exact(figure.measured_at),
        format_ago(figure.measured_at, health.now),
    )


@register.simple_tag
def health_bars(strip: Strip, channel: Channel) -> SafeString:
    """Render the strip's bars, each a link to its bucket, and above them the outline of the bucket of the page."""
    base = url_of("channel_health", channel.pk)
    last = len(strip.bars) - 1
    bars = fill_each(
        '<a href="{}{}/" class="is-{}{}" tabindex="{}" aria-label="{}"{}><title>{}</title>'
        '<rect class="slot" x="{}" y="0" width="{}" height="{}"/>'
        '<rect class="bar" x="{}" y="{}" width="{}" height="{}" rx="1"/>{}'
        '<rect class="mark" x="{}" y="{}" width="{}" height="3"/></a>',
        (
            (
                base, bar.bucket, bar.kind, " here" if bar.here else "", 0 if number == last else -1, bar.title,
                _CURRENT if bar.here else "", bar.title,
                bar.x, bar.slot, strip.bar_field, *_kept_part(bar), _dead_part(bar),
                bar.x, strip.bar_field, bar.width,
            )
            for number, bar in enumerate(strip.bars)
        ),
    )  # fmt: skip
    outlines = fill_each(
        '<rect class="outline" x="{}" y="0" width="{}" height="{}"/>',
        ((bar.x, bar.slot, strip.bar_field) for bar in strip.bars if bar.here),
    )
    return fill("{}{}", bars, outlines)


_DOT = 2
"""Pixels: side of a mark for a bucket that was never written."""

_CURRENT = mark_safe(' aria-current="true"')


def _kept_part(bar: Bar) -> tuple[float, float, float, float]:
    """Return x, y, width and height of what is not dead; of a bucket that was never written a dot."""
    if bar.kind == UNWRITTEN:
        return bar.x + (bar.width - _DOT) / 2, bar.y, _DOT, _DOT
    return bar.x, bar.kept_y, bar.width, bar.kept_height


def _dead_part(bar: Bar) -> SafeString | str:
    if not bar.highlighted:
        return ""
    return fill(
        '<rect class="dead-rows" x="{}" y="{}" width="{}" height="{}" rx="1"/>',
        bar.x,
        bar.y,
        bar.width,
        bar.highlighted_height,
    )


@register.simple_tag
def bucket_rows(health: ChannelHealth, buckets: Iterable[BucketHealth], channel: Channel) -> SafeString:
    """Render the same as a table: a row for each of some buckets that was ever written."""
    base = url_of("channel_health", channel.pk)
    return fill_each(
        '<tr><td class="nowrap"><a href="{}{}/">{}</a></td><td>{}</td><td class="num">{}</td><td class="num">{}</td>'
        '<td class="num">{}</td><td class="num">{}</td><td class="num">{}</td><td class="nowrap">{}</td>'
        '<td class="nowrap">{}</td></tr>',
        (
            (
                base, bucket.bucket, formats.format_days(bucket.first_day, bucket.last_day), bucket_chip(bucket),
                thousands(bucket.messages), thousands(bucket.known.tombstones), percent_of(bucket.dead_percent),
                size(bucket.known.bytes), milliseconds(bucket.page_us), since_when(health, bucket.latest),
                ago(bucket.repaired_at) if bucket.repaired_at else formats.unknown(),
            )
            for bucket in buckets
            if bucket.was_written
        ),
    )  # fmt: skip


def percent_of(value: float | None) -> str:
    """25.04 → "25.0 %"; None → "unknown"."""
    return formats.format_percent(value)
