"""Maintenance and findings in words: states, times ahead, what a run did, where a finding is mended."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from chatstore.domain.runs import RunState, Severity
from chatstore.domain.schedules import Slot
from chatstore.models import JobRun
from moderation.templatetags.chat import exact

register = template.Library()

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))

_CHIPS = {
    RunState.QUEUED: ("busy", "queued"),
    RunState.RUNNING: ("busy", "at work"),
    RunState.DONE: ("done", "done"),
    RunState.FAILED: ("needs", "failed"),
    RunState.SKIPPED: ("", "skipped"),
    RunState.STOPPED: ("", "stopped"),
}
"""The class and the word of each state; the word alone must be enough."""

_SEVERITIES = {Severity.RED: ("urgent", "urgent"), Severity.AMBER: ("needs", "look at it today")}


@register.simple_tag
def run_chip(run: JobRun) -> SafeString:
    """A run's state as a coloured word."""
    return format_html('<span class="chip {}">{}</span>', *_CHIPS[RunState(run.state)])


@register.filter
def state_word(state: str) -> str:
    """What a run's state is called: "at work"."""
    return _CHIPS[RunState(state)][1]


@register.simple_tag
def severity_chip(severity: int) -> SafeString:
    """How bad a finding is, as a coloured word."""
    return format_html('<span class="chip {}">{}</span>', *_SEVERITIES[Severity(severity)])


@register.filter
def did_words(did: Mapping[str, Any]) -> str:
    """What a run did: "9 buckets, 1,204 live rows"; "" for nothing said."""
    return ", ".join(_say_count(name.replace("_", " "), value) for name, value in did.items())


def _say_count(name: str, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,} {name}"
    return f"{name}: {value}"


@register.simple_tag
def ahead(moment: dt.datetime) -> SafeString:
    """A `<time>` that says in how long, with the exact moment on hover."""
    words = _say_ahead((moment - timezone.now()).total_seconds())
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact(moment), words)


@register.simple_tag
def wall_clock(slot: Slot) -> SafeString:
    """What the clock on the wall shows at a slot: "Sun 29 March, 02:30"."""
    wall = slot.wall
    words = f"{wall:%a} {wall.day} {wall:%B}{'' if wall.year == timezone.now().year else f' {wall.year}'}, {wall:%H:%M}"
    return format_html('<time datetime="{}" title="{}">{}</time>', slot.at.isoformat(), exact(slot.at), words)


def _say_ahead(seconds: float) -> str:
    for length, unit in _UNITS:
        if seconds >= length:
            whole = round(seconds / length)
            return f"in {whole:,} {unit}{'' if whole == 1 else 's'}"
    return "in less than a minute"


@register.filter
def did_name(name: str) -> str:
    """A count's name as a heading: "live_rows" → "Live rows"."""
    return name.replace("_", " ").capitalize()
