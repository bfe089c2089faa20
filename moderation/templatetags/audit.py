"""Template tags of the audit log."""

from __future__ import annotations

from django import template

from moderation.presentation.audit import facts_in_line, facts_in_short, format_fact, label_of

register = template.Library()

register.filter("action_label", label_of)
register.filter("fact", format_fact)
register.filter("facts_in_line", facts_in_line)
register.filter("facts_in_short", facts_in_short)
