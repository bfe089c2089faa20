"""Template tags of the audit log."""

from __future__ import annotations

import re

from django import template

from moderation.presentation.audit import (
    facts_in_line,
    facts_in_short,
    format_fact,
    is_by_visitor,
    label_of,
    outcome_of,
)

register = template.Library()

register.filter("action_label", label_of)
register.filter("by_visitor", is_by_visitor)
register.filter("fact", format_fact)
register.filter("facts_in_line", facts_in_line)
register.filter("facts_in_short", facts_in_short)
register.filter("report_outcome", outcome_of)

_SHA256 = re.compile(r"[0-9a-f]{64}")


@register.filter
def is_hash(value: str) -> bool:
    """Return whether a value is a SHA-256 in hexadecimal, which is shown in a monospaced font."""
    return _SHA256.fullmatch(value) is not None
