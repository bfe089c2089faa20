"""Template tags of maintenance: a run's state, its results, and times to come."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

from django import template
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from chatstore.domain.runs import RunState, Severity
from chatstore.domain.schedules import Slot
from chatstore.models import JobRun
from moderation.presentation import formats
from moderation.templatetags.chat import time_tag

register = template.Library()

_CHIPS: dict[RunState, tuple[str, str | Promise]] = {
    RunState.QUEUED: ("busy", pgettext_lazy("state of a run", "queued")),
    RunState.RUNNING: ("busy", pgettext_lazy("state of a run", "running")),
    RunState.DONE: ("done", pgettext_lazy("state of a run", "done")),
    RunState.FAILED: ("warning", pgettext_lazy("state of a run", "failed")),
    RunState.SKIPPED: ("", pgettext_lazy("state of a run", "skipped")),
    RunState.STOPPED: ("", pgettext_lazy("state of a run", "stopped")),
}
"""CSS class and label of each state. The label must do without the colour."""

_SEVERITIES: dict[Severity, tuple[str, str | Promise]] = {
    Severity.RED: ("urgent", gettext_lazy("critical")),
    Severity.AMBER: ("warning", gettext_lazy("warning")),
}

_RESULTS: dict[str, Callable[[int], str]] = {
    "buckets": lambda n: ngettext("%(count)s bucket", "%(count)s buckets", n),
    "channels": lambda n: ngettext("%(count)s channel", "%(count)s channels", n),
    "messages": lambda n: ngettext("%(count)s message", "%(count)s messages", n),
    "nodes": lambda n: ngettext("%(count)s node", "%(count)s nodes", n),
    "ranges": lambda n: ngettext("%(count)s range", "%(count)s ranges", n),
    "replicas": lambda n: ngettext("%(count)s replica", "%(count)s replicas", n),
    "statements": lambda n: ngettext("%(count)s statement", "%(count)s statements", n),
    "tables": lambda n: ngettext("%(count)s table", "%(count)s tables", n),
    "tombstones": lambda n: ngettext("%(count)s tombstone", "%(count)s tombstones", n),
    "failed": lambda n: ngettext("%(count)s failed", "%(count)s failed", n) if n else _("none failed"),
}
"""Translated counts by the names that runs record. A run's other results are shown as recorded."""

_RESULT_NAMES: dict[str, str | Promise] = {
    "buckets": gettext_lazy("Buckets"),
    "channels": gettext_lazy("Channels"),
    "messages": gettext_lazy("Messages"),
    "microseconds": gettext_lazy("Time"),
    "nodes": gettext_lazy("Nodes"),
    "ranges": gettext_lazy("Ranges"),
    "replicas": gettext_lazy("Replicas"),
    "statements": gettext_lazy("Statements"),
    "tables": gettext_lazy("Tables"),
    "tombstones": gettext_lazy("Tombstones"),
    "failed": gettext_lazy("Failed"),
}


@register.simple_tag
def run_chip(run: JobRun) -> SafeString:
    """Render a run's state as a coloured label."""
    return format_html('<span class="chip {}">{}</span>', *_CHIPS[RunState(run.state)])


@register.filter
def state_label(state: str) -> str:
    """Return the label of a run's state: "running"."""
    return str(_CHIPS[RunState(state)][1])


@register.simple_tag
def severity_chip(severity: int) -> SafeString:
    """Render a finding's severity as a coloured label."""
    return format_html('<span class="chip {}">{}</span>', *_SEVERITIES[Severity(severity)])


@register.filter
def result_summary(result: Mapping[str, Any]) -> str:
    """Return a run's results: "9 buckets, 1,204 live rows"; "" for none. Failures come last."""
    ordered = sorted(result.items(), key=lambda result: result[0] == "failed")
    return ", ".join(_format_count(name, value) for name, value in ordered)


def _format_count(name: str, value: object) -> str:
    readable = name.replace("_", " ")
    if not isinstance(value, int) or isinstance(value, bool):
        return f"{readable}: {value}"
    if name == "microseconds":
        return formats.format_milliseconds(value / 1000)
    if name in _RESULTS:
        return _RESULTS[name](value) % {"count": formats.format_number(value)}
    return f"{formats.format_number(value)} {readable}"


@register.simple_tag
def ahead(moment: dt.datetime) -> SafeString:
    """Render a `<time>` that is still to come, with the exact time on hover."""
    return time_tag(moment, formats.format_ahead(moment, timezone.now()))


@register.simple_tag
def wall_clock(slot: Slot) -> SafeString:
    """Render a slot in the time zone of its schedule: "Sun 29 March, 02:30"."""
    return time_tag(slot.at, formats.format_slot(slot.wall, this_year=timezone.now().year))


@register.filter
def result_name(name: str) -> str:
    """Return the name of a result as a heading: "live_rows" → "Live rows"."""
    return str(_RESULT_NAMES.get(name) or name.replace("_", " ").capitalize())


@register.filter
def result_value(value: Any, name: str) -> str:
    """Return a result's value below its heading: 26754 of "microseconds" → "26.8 ms"."""
    if not isinstance(value, int) or isinstance(value, bool):
        return str(value)
    return formats.format_milliseconds(value / 1000) if name == "microseconds" else formats.format_number(value)
