"""Template tags of guilds: their icon, and the roles of their members."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.safestring import SafeString

from chatstore.domain.members import MemberRole
from chatstore.models import Guild
from moderation.presentation.avatars import tone_of
from moderation.presentation.guild_icons import draw_guild_icon
from moderation.presentation.html import fill, join
from moderation.presentation.member_roles import draw_member_role

register = template.Library()


@register.simple_tag
def guild_icon(guild: Guild) -> SafeString:
    """Render the small icon of a guild beside its name."""
    icon = draw_guild_icon(guild.name, guild.icon_url)
    return fill('<span class="guild-icon tone{}">{}</span>', tone_of(guild.pk), icon)


@register.simple_tag
def member_roles(roles: Iterable[MemberRole]) -> SafeString:
    """Render the roles of a member, the highest first."""
    return join(map(draw_member_role, roles), "\n")
