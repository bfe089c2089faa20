"""Health in words: a bucket's state, a figure with its source and age."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from chatstore.domain.health import BucketState, say_bytes
from chatstore.domain.runs import Severity
from chatstore.operations.channel_health import BucketHealth, ChannelHealth
from chatstore.store.figures import Figure
from moderation.domain.health_strip import STATE_WORDS
from moderation.domain.history_chart import say_milliseconds
from moderation.templatetags.chat import exact, say_ago

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
