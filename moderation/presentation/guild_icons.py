"""Icons of guilds: the initials of the name, and above them the image, if pages may load it."""

from __future__ import annotations

from django.utils.safestring import SafeString

from moderation.presentation.avatars import initials_of
from moderation.presentation.html import fill
from moderation.presentation.media import may_load


def draw_guild_icon(name: str, url: str) -> SafeString:
    """Render the contents of an icon. An image that cannot be loaded leaves the initials."""
    return fill('<span aria-hidden="true">{}</span>{}', initials_of(name), _draw_image(url) if may_load(url) else "")


def _draw_image(url: str) -> SafeString:
    return fill(
        '<img class="guild-image" src="{}" alt="" loading="lazy" decoding="async" referrerpolicy="no-referrer">', url
    )
