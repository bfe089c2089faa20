"""Roles that chat users have in a guild, as labels."""

from __future__ import annotations

from django.utils.safestring import SafeString

from chatstore.domain.controls import show_hidden
from chatstore.domain.members import MemberRole
from moderation.presentation.html import fill

_NO_COLOR = SafeString("")


def draw_member_role(role: MemberRole) -> SafeString:
    """Render a role: a dot in its color beside the name, which keeps the page's own color, and so its contrast."""
    name = show_hidden(role.name)
    dot = (
        fill('<svg viewBox="0 0 8 8" aria-hidden="true"><circle cx="4" cy="4" r="3.5" fill="{}"/></svg>', role.color)
        if role.color
        else _NO_COLOR
    )
    return fill('<span class="role" title="{}">{}<bdi class="clip">{}</bdi></span>', name, dot, name)
