"""Template tags of cluster health: repair clocks, gc_grace, and what a node's list omits."""

from __future__ import annotations

from django import template
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatstore.domain.repair_clocks import ClockState, RepairClock
from chatstore.domain.runs import Severity
from chatstore.operations.health.cluster_health import Listing, Partition
from chatstore.store.nodes import Node
from moderation.presentation import formats

register = template.Library()

_CLOCK_CHIPS: dict[ClockState, tuple[str, str | Promise]] = {
    ClockState.OK: ("done", gettext_lazy("in time")),
    ClockState.WARNING: ("warning", gettext_lazy("late")),
    ClockState.CRITICAL: ("critical", gettext_lazy("overdue: purges wait")),
}
_SEVERITIES: dict[Severity, tuple[str, str | Promise]] = {
    Severity.WARNING: ("warning", gettext_lazy("warning")),
    Severity.CRITICAL: ("critical", gettext_lazy("critical")),
}


@register.simple_tag
def node_chip(node: Node) -> SafeString:
    """Render a node's state as a coloured label."""
    if node.is_up is None:
        css, label = "", _("unknown")
    elif not node.is_up:
        css, label = "critical", _("down")
    elif node.error:
        css, label = "failed", _("no response")
    else:
        css, label = "done", _("up")
    return format_html('<span class="chip {}">{}</span>', css, label)


@register.simple_tag
def clock_chip(clock: RepairClock) -> SafeString:
    """Render a repair clock's state as a coloured label."""
    if not clock.is_deleted_from:
        return format_html('<span class="chip">{}</span>', _("no deletes"))
    css, label = _CLOCK_CHIPS[clock.state]
    if clock.counts_from is None:
        label = _("all covered")
    return format_html('<span class="chip {}">{}</span>', css, label)


@register.filter
def clock_text(clock: RepairClock) -> str:
    """Return a sentence about the time that is left."""
    if not clock.is_deleted_from:
        return _("Nothing is deleted from this table. Repairs only keep its replicas in sync.")
    if clock.counts_from is None:
        return _("A repair covers every recorded delete.")
    if clock.seconds_left <= 0:
        return _("gc_grace ended %(duration)s ago.") % {"duration": format_long_duration(-clock.seconds_left)}
    return _("%(duration)s of gc_grace left.") % {"duration": format_long_duration(clock.seconds_left)}


@register.filter
def format_long_duration(seconds: float) -> str:
    """Format days and hours: "1 day 4 h", "10 days"; below a day as `duration`."""
    return formats.keep_together(formats.format_long_duration(seconds))


@register.filter
def used_percent(clock: RepairClock) -> int:
    """Return the used share of gc_grace, 0 to 100."""
    return min(100, int(clock.share * 100))


@register.simple_tag
def partition_chip(partition: Partition) -> SafeString:
    """Render the severity of a partition over a limit as a coloured label; nothing for any other."""
    if partition.severity is None:
        return format_html("{}", "")
    return format_html('<span class="chip {}">{}</span>', *_SEVERITIES[partition.severity])


@register.filter
def floor_text(listing: Listing) -> str:
    """Return which partitions a node's lists omit."""
    if listing.floor_bytes is None or listing.floor_tombstones is None:
        return _("what the list omits is unknown")
    if listing.floor_bytes <= 1 and listing.floor_tombstones <= 1:
        return _("list complete")
    return _("partitions below %(tombstones)s or %(size)s are not listed") % {
        "tombstones": formats.keep_together(formats.format_count(listing.floor_tombstones, "tombstone")),
        "size": formats.keep_together(formats.format_size(listing.floor_bytes)),
    }
