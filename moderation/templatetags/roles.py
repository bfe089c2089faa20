"""Template tags of roles."""

from __future__ import annotations

import datetime as dt

from django import template
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from chatstore.domain.roles import Role
from chatstore.operations.rights import grants_of
from moderation.domain.limits import Limits
from moderation.presentation.formats import format_number, format_short_day
from moderation.presentation.roles import LIMIT_LABELS, ROLE_LABELS

register = template.Library()


@register.filter
def role_names(user: AbstractUser) -> list[str]:
    """Return the labels of an account's roles, each once."""
    held = {grant.role for grant in grants_of(user)}
    return [str(label) for role, label in ROLE_LABELS.items() if role in held]


@register.filter
def role_label(role: str) -> str:
    """Return the label of a role."""
    return str(ROLE_LABELS[Role(role)])


@register.filter
def last_day(until: dt.datetime) -> str:
    """Return the last day of a role that ends at midnight of the reader's time zone, else ""."""
    local = timezone.localtime(until)
    return "" if local.time() != dt.time() else format_short_day(local.date() - dt.timedelta(days=1))


@register.filter
def limits_in_words(limits: Limits) -> list[str]:
    """Return each limit that is set, with its label."""
    return [f"{LIMIT_LABELS[name]}: {format_number(limit)}" for name, limit in limits.as_json().items()]
