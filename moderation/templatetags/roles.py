"""Template tags of roles."""

from __future__ import annotations

from django import template
from django.contrib.auth.models import AbstractUser

from chatstore.domain.roles import Role
from chatstore.operations.rights import grants_of
from moderation.presentation.roles import ROLE_LABELS

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
