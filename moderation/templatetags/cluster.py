"""The cluster in words: repair clocks, gc_grace, what a node's list leaves out."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from chatstore.domain.health import say_bytes
from chatstore.domain.repair_clocks import ClockState, RepairClock
from chatstore.domain.runs import Severity
from chatstore.operations.health.cluster_health import Listing, Partition
from moderation.templatetags.chat import duration

register = template.Library()

_CLOCK_CHIPS = {
    ClockState.GREEN: ("done", "in time"),
    ClockState.AMBER: ("needs", "late"),
    ClockState.RED: ("urgent", "too late: purges wait"),
}
_SEVERITIES = {Severity.AMBER: ("needs", "warns"), Severity.RED: ("urgent", "alarms")}


@register.simple_tag
def clock_chip(clock: RepairClock) -> SafeString:
    """A repair clock's state as a coloured word."""
    if not clock.is_deleted_from:
        return format_html('<span class="chip">{}</span>', "nothing to cover")
    css, word = _CLOCK_CHIPS[clock.state]
    if clock.counts_from is None:
        word = "all covered"
    return format_html('<span class="chip {}">{}</span>', css, word)


@register.filter
def clock_words(clock: RepairClock) -> str:
    """How much time is left, in a sentence."""
    if not clock.is_deleted_from:
        return "Nothing is deleted from it; repairs only keep its replicas alike."
    if clock.counts_from is None:
        return "Every delete that was noted is covered by a repair."
    if clock.seconds_left <= 0:
        return f"gc_grace has been over for {say_long(-clock.seconds_left)}."
    return f"{say_long(clock.seconds_left)} of gc_grace are left."


@register.filter
def say_long(seconds: float) -> str:
    """Days and hours: "1 day 4 h", "10 days"; below a day as `duration`."""
    days, rest = divmod(round(seconds), 86_400)
    if not days:
        return duration(seconds)
    hours = f" {rest // 3_600} h" if rest >= 3_600 else ""
    return f"{days} day{'' if days == 1 else 's'}{hours}"


@register.filter
def used_percent(clock: RepairClock) -> int:
    """Of gc_grace, 0 to 100."""
    return min(100, int(clock.share * 100))


@register.simple_tag
def partition_chip(partition: Partition) -> SafeString:
    """Whether a partition is over a limit, as a coloured word; nothing when it is not."""
    if partition.severity is None:
        return format_html("{}", "")
    return format_html('<span class="chip {}">{}</span>', *_SEVERITIES[partition.severity])


@register.filter
def floor_words(listing: Listing) -> str:
    """What a node's lists leave out."""
    if listing.floor_bytes is None or listing.floor_tombstones is None:
        return "what it leaves out is not known"
    if listing.floor_bytes <= 1 and listing.floor_tombstones <= 1:
        return "it leaves nothing out but for its length"
    return f"below {listing.floor_tombstones:,} tombstones or {say_bytes(listing.floor_bytes)} nothing is listed"
