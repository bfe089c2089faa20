"""Template tags of the list of guilds and channels."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chatstore.domain.controls import show_hidden
from chatstore.models import Channel, Guild
from moderation.operations.lookup.sidebar import Sidebar
from moderation.presentation.avatars import tone_of
from moderation.presentation.formats import format_number, format_short
from moderation.presentation.guild_icons import draw_guild_icon
from moderation.presentation.html import fill, fill_each
from moderation.presentation.page_urls import url_of
from moderation.presentation.spark import BAR_PITCH, HEIGHT, draw_spark
from moderation.templatetags.chat import draw_raid_mark

register = template.Library()

_CURRENT_PAGE = SafeString(' aria-current="page"')
_CURRENT = SafeString(' aria-current="true"')


@register.simple_tag
def channel_links(sidebar: Sidebar, channels: Iterable[Channel], *, with_guild: bool = False) -> SafeString:
    """Render channels as items of a list, each a link to its newest messages. with_guild: below the name."""
    current = _CURRENT_PAGE if sidebar.is_open else _CURRENT
    live = fill('<span class="live-dot" title="{}"></span>', _("posted in within the last hour"))
    raid = draw_raid_mark()
    return fill_each(
        '<li>\n<a href="{}#end"{}><span class="clip"><bdi>{}</bdi>{}</span>{}{}</a>\n</li>',
        (
            (
                url_of("timeline", channel.pk),
                current if channel.pk == sidebar.channel_id else "",
                show_hidden(str(channel)),
                fill(' <bdi class="quiet small">{}</bdi>', show_hidden(str(channel.guild)))
                if with_guild and channel.guild
                else "",
                raid if channel.pk in sidebar.raided else "",
                _spark(sidebar.posts[channel.pk])
                if channel.pk in sidebar.posts
                else live
                if channel.pk in sidebar.active
                else "",
            )
            for channel in channels
        ),
    )


def _spark(posts: tuple[int, ...]) -> SafeString:
    """Render the posts of the last hour: their bars, and their number."""
    number, width = sum(posts), len(posts) * BAR_PITCH
    title = ngettext("%(count)s message in the last hour", "%(count)s messages in the last hour", number)
    return fill(
        '<span class="now" title="{}"><svg class="spark" viewBox="0 0 {} {}" width="{}" height="{}" aria-hidden="true">'
        '<path d="{}"/></svg><span aria-hidden="true">{}</span><span class="sr">{}</span></span>',
        title % {"count": format_number(number)},
        width,
        HEIGHT,
        width,
        HEIGHT,
        draw_spark(posts),
        format_short(number),
        title % {"count": format_number(number)},
    )


@register.simple_tag
def guild_links(sidebar: Sidebar) -> SafeString:
    """Render guilds as icons, each a link to its most recently active channel."""
    current = sidebar.guild.pk if sidebar.guild and sidebar.channel_id is not None else None
    return fill_each(
        '<li>\n<a class="guild tone{}{}{}" href="{}" title="{}"{}>{}<span class="sr">{}</span></a>\n</li>',
        (
            (
                tone_of(guild.pk),
                " live" if guild.pk in sidebar.active_guilds else "",
                " raided" if guild.pk in sidebar.raided_guilds else "",
                url_of("guild", guild.pk),
                name,
                _CURRENT if guild.pk == current else "",
                draw_guild_icon(guild.name, guild.icon_url),
                name,
            )
            for guild in sidebar.guilds
            for name in (_name_of(guild, sidebar),)
        ),
    )


def _name_of(guild: Guild, sidebar: Sidebar) -> str:
    name = show_hidden(str(guild))
    return _("%(name)s: possible raid") % {"name": name} if guild.pk in sidebar.raided_guilds else name
