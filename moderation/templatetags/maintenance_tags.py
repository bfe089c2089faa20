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
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from chatstore.domain.runs import RunState, Severity
from chatstore.domain.schedules import Slot
from chatstore.domain.texts import from_json
from chatstore.models import JobRun
from chatstore.operations.repair_status.rounds import NODES_REPAIRED, ROUND_BEGAN
from moderation.presentation import formats
from moderation.presentation.texts import show_param
from moderation.templatetags.chat import time_tag

register = template.Library()

_CHIPS: dict[RunState, tuple[str, str | Promise]] = {
    RunState.QUEUED: ("busy", pgettext_lazy("state of a run", "queued")),
    RunState.RUNNING: ("busy", pgettext_lazy("state of a run", "running")),
    RunState.DONE: ("done", pgettext_lazy("state of a run", "done")),
    RunState.FAILED: ("failed", pgettext_lazy("state of a run", "failed")),
    RunState.SKIPPED: ("", pgettext_lazy("state of a run", "skipped")),
    RunState.STOPPED: ("", pgettext_lazy("state of a run", "stopped")),
}
"""CSS class and label of each state. The label must do without the color."""

_SEVERITIES: dict[Severity, tuple[str, str | Promise]] = {
    Severity.CRITICAL: ("critical", gettext_lazy("critical")),
    Severity.WARNING: ("warning", gettext_lazy("warning")),
}

_COUNTS: dict[str, Callable[[int], str]] = {
    "already up to date": lambda n: ngettext("%(count)s already up to date", "%(count)s already up to date", n),
    "archived": lambda n: ngettext("%(count)s archived", "%(count)s archived", n),
    "buckets": lambda n: ngettext("%(count)s bucket", "%(count)s buckets", n),
    "buckets measured": lambda n: ngettext("%(count)s bucket measured", "%(count)s buckets measured", n),
    "buckets with deletes": lambda n: ngettext("%(count)s bucket with deletes", "%(count)s buckets with deletes", n),
    "channels": lambda n: ngettext("%(count)s channel", "%(count)s channels", n),
    "closed": lambda n: ngettext("%(count)s closed", "%(count)s closed", n),
    "copies renewed": lambda n: ngettext("%(count)s copy renewed", "%(count)s copies renewed", n),
    "entries": lambda n: ngettext("%(count)s entry", "%(count)s entries", n),
    "erased": lambda n: ngettext("%(count)s permanently deleted", "%(count)s permanently deleted", n),
    "failed": lambda n: ngettext("%(count)s failed", "%(count)s failed", n) if n else _("none failed"),
    "found empty": lambda n: ngettext("%(count)s found empty", "%(count)s found empty", n),
    "linked": lambda n: ngettext("%(count)s linked", "%(count)s linked", n),
    "left for the next run": lambda n: ngettext(
        "%(count)s left for the next run", "%(count)s left for the next run", n
    ),
    "live_rows": lambda n: ngettext("%(count)s live row", "%(count)s live rows", n),
    "messages": lambda n: ngettext("%(count)s message", "%(count)s messages", n),
    "messages rewritten": lambda n: ngettext("%(count)s message rewritten", "%(count)s messages rewritten", n),
    "nodes": lambda n: ngettext("%(count)s node", "%(count)s nodes", n),
    "nodes left": lambda n: (
        ngettext("%(count)s node left for the next run", "%(count)s nodes left for the next run", n)
        if n
        else _("no nodes left for the next run")
    ),
    "nodes repaired": lambda n: ngettext("%(count)s node repaired", "%(count)s nodes repaired", n),
    "ranges": lambda n: ngettext("%(count)s range", "%(count)s ranges", n),
    "read": lambda n: ngettext("%(count)s read", "%(count)s read", n),
    "removable": lambda n: ngettext("%(count)s can be deleted", "%(count)s can be deleted", n),
    "replicas": lambda n: ngettext("%(count)s replica", "%(count)s replicas", n),
    "statements": lambda n: ngettext("%(count)s statement", "%(count)s statements", n),
    "tables": lambda n: ngettext("%(count)s table", "%(count)s tables", n),
    "tombstones": lambda n: ngettext("%(count)s tombstone", "%(count)s tombstones", n),
    "too young": lambda n: ngettext("%(count)s too young", "%(count)s too young", n),
}
"""Translated counts by the names that runs record; other results are shown as "name: value"."""

_WORDED_ZEROS = frozenset({"failed", "nodes left"})
"""Counts of which zero is good news, and worded."""

_RESULT_NAMES: dict[str, Promise] = {
    "afterwards": gettext_lazy("afterwards"),
    "already up to date": gettext_lazy("already up to date"),
    "archived": pgettext_lazy("result of a run", "archived"),
    "buckets": gettext_lazy("buckets"),
    "buckets measured": gettext_lazy("buckets measured"),
    "buckets with deletes": gettext_lazy("buckets with deletes"),
    "channels": gettext_lazy("channels"),
    "closed": gettext_lazy("closed"),
    "copies renewed": gettext_lazy("copies renewed"),
    "entries": gettext_lazy("entries"),
    "erased": gettext_lazy("permanently deleted"),
    "failed": gettext_lazy("failed"),
    "found empty": gettext_lazy("found empty"),
    "gc_grace": pgettext_lazy("setting of a table", "gc_grace"),
    "is": pgettext_lazy("value of a setting", "is"),
    "linked": gettext_lazy("linked"),
    "left for the next run": gettext_lazy("left for the next run"),
    "live_rows": gettext_lazy("live rows"),
    "messages": gettext_lazy("messages"),
    "messages rewritten": gettext_lazy("messages rewritten"),
    "microseconds": gettext_lazy("time"),
    "nodes": gettext_lazy("nodes"),
    "nodes left": gettext_lazy("nodes left for the next run"),
    "nodes repaired": gettext_lazy("nodes repaired"),
    "not needed": gettext_lazy("not needed"),
    "pages": gettext_lazy("pages"),
    "ranges": gettext_lazy("ranges"),
    "read": pgettext_lazy("result of a run", "read"),
    "repaired by an earlier attempt": gettext_lazy("repaired by an earlier attempt"),
    "removable": gettext_lazy("can be deleted"),
    "replicas": gettext_lazy("replicas"),
    "replicas are": gettext_lazy("state of the replicas"),
    "rewrite": gettext_lazy("rewrite"),
    "round began": gettext_lazy("round began"),
    "statements": gettext_lazy("statements"),
    "still waiting": gettext_lazy("still waiting"),
    "tables": gettext_lazy("tables"),
    "tombstones": gettext_lazy("tombstones"),
    "tombstones at least": gettext_lazy("tombstones, at least"),
    "tombstones before": gettext_lazy("tombstones before"),
    "tombstones in the page": gettext_lazy("tombstones in the page"),
    "too young": gettext_lazy("too young"),
    "waiting for a repair": gettext_lazy("waiting for a repair"),
    "was": pgettext_lazy("value of a setting", "was"),
}
"""Names of the results that runs record, as within a sentence."""

_OLD = dt.timedelta(days=30)
"""From then on the age of a time is given as its day."""

_NODE_RESULT_NAMES: dict[str, Promise] = {
    "tombstones on ": gettext_lazy("tombstones on %(node)s"),
    "bytes on ": gettext_lazy("bytes on %(node)s"),
    "no figures from ": gettext_lazy("no figures from %(node)s"),
}
"""Names of the results of one node; its address follows."""

_RESULT_VALUES: dict[str, Promise] = {
    "below the listed minimum": gettext_lazy("below the listed minimum"),
    "different": pgettext_lazy("state of the replicas", "different"),
    "in sync": pgettext_lazy("state of the replicas", "in sync"),
    "not measured": gettext_lazy("not measured"),
    "read it": pgettext_lazy("pages", "read it"),
    "restored": pgettext_lazy("gc_grace", "restored"),
    "skip it": pgettext_lazy("pages", "skip it"),
    "there is only one replica": gettext_lazy("there is only one replica"),
}
"""Labels of the words that runs record as results."""


@register.simple_tag
def run_chip(run: JobRun) -> SafeString:
    """Render a run's state as a colored label."""
    return format_html('<span class="chip {}">{}</span>', *_CHIPS[RunState(run.state)])


@register.filter
def state_label(state: str) -> str:
    """Return the label of a run's state: "running"."""
    return str(_CHIPS[RunState(state)][1])


@register.simple_tag
def severity_chip(severity: int) -> SafeString:
    """Render a finding's severity as a colored label."""
    return format_html('<span class="chip {}">{}</span>', *_SEVERITIES[Severity(severity)])


@register.filter
def severity_class(severity: int) -> str:
    """Return the CSS class of a finding's severity."""
    return _SEVERITIES[Severity(severity)][0]


@register.filter
def result_summary(result: Mapping[str, Any]) -> str:
    """Return a run's results: "9 buckets, 1,204 live rows; round began 26 Nov 2026, 15:32 UTC"; "" for none.

    Counts come first, those of failures last among them. The others may contain commas. Counts of zero are left out,
    unless all are zero or a word says so, and so is the number of nodes if as many were repaired.
    """
    ordered = sorted(result.items(), key=lambda result: result[0] == "failed")
    found = {name: value for name, value in ordered if _is_count(name, value)}
    if found.get("nodes") == found.get(NODES_REPAIRED):
        found.pop("nodes", None)
    if any(found.values()):
        found = {name: value for name, value in found.items() if value or name in _WORDED_ZEROS}
    counts = [_summarize_count(name, value) for name, value in found.items()]
    others = [_summarize(name, value) for name, value in ordered if not _is_count(name, value)]
    return "; ".join(filter(None, [formats.join_list(counts), *others]))


def _is_count(name: str, value: object) -> bool:
    return isinstance(value, int) and name in _COUNTS


def _summarize_count(name: str, value: int) -> str:
    return formats.keep_together(_COUNTS[name](value) % {"count": formats.format_number(value)})


def _summarize(name: str, value: object) -> str:
    if name == "microseconds":
        return result_value(value, name)
    if name == ROUND_BEGAN:
        return _("round began %(when)s") % {"when": formats.keep_together(result_value(value, name))}
    return _("%(name)s: %(value)s") % {"name": _name_of(name), "value": result_value(value, name)}


@register.filter
def stored_text(value: Any) -> Any:
    """Return the text that was stored in a JSON field."""
    return from_json(value)


@register.simple_tag
def ahead(time: dt.datetime) -> SafeString:
    """Render a `<time>` that is still to come, with the exact time on hover."""
    return time_tag(time, formats.format_ahead(time, timezone.now()))


@register.simple_tag
def dated_ago(time: dt.datetime | None) -> SafeString:
    """Render a `<time>` with its date and its age: "27 Nov 2026, 04:05 (3 hours ago)"; without the age if it is old."""
    if time is None:
        return format_html("{}", _("never"))
    now = timezone.now()
    words = {"time": formats.format_datetime(time), "ago": formats.format_ago(time, now)}
    return time_tag(time, words["time"] if now - time >= _OLD else _("%(time)s (%(ago)s)") % words)


@register.simple_tag
def wall_clock(slot: Slot) -> SafeString:
    """Render a slot in the time zone of its schedule: "Sun 29 March, 02:30"."""
    return time_tag(slot.at, formats.format_slot(slot.wall, this_year=timezone.now().year))


@register.filter
def result_name(name: str) -> str:
    """Return the name of a result as a heading: "live_rows" → "Live rows"."""
    # The name of a setting is written as in Cassandra.
    return _name_of(name) if name == "gc_grace" else capfirst(_name_of(name))


def _name_of(name: str) -> str:
    for prefix, label in _NODE_RESULT_NAMES.items():
        if name.startswith(prefix):
            return str(label) % {"node": name[len(prefix) :]}
    # Results of older versions are shown as recorded.
    return str(_RESULT_NAMES.get(name) or name.replace("_", " "))


@register.filter
def result_value(value: Any, name: str) -> str:
    """Return a result's value below its heading: 26754 of "microseconds" → "26.8 ms"."""
    if name == "rewrite":
        # The id of a purge.
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return formats.format_milliseconds(value / 1000) if name == "microseconds" else formats.format_number(value)
    if isinstance(value, str) and value in _RESULT_VALUES:
        return str(_RESULT_VALUES[value])
    return show_param(from_json(value))
