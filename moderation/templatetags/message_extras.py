"""What messages have besides their text, as HTML: attachments, stickers, embeds and reactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chatstore.domain.controls import show_hidden
from moderation.presentation import formats
from moderation.presentation.extras import Attachment, Embed
from moderation.presentation.html import fill, fill_each, fill_named, join
from moderation.presentation.markup import host_of
from moderation.presentation.media import may_load
from moderation.templatetags.message_text import Names, draw_link, draw_text

_FILE_ICON = SafeString(
    '<svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true">'
    '<path d="M11.5 2.5H5.8A1.3 1.3 0 0 0 4.5 3.8v12.4a1.3 1.3 0 0 0 1.3 1.3h8.4a1.3 1.3 0 0 0 1.3-1.3V6.5z"/>'
    '<path d="M11.5 2.5v4h4"/></svg>'
)

_EDGE = '<svg class="embed-edge" aria-hidden="true"><rect width="100%" height="100%" fill="{}"/></svg>\n'
"""The edge in the embed's color: the Content-Security-Policy forbids styles in elements."""


def draw_extras(
    attachments: Sequence[Attachment],
    stickers: Sequence[str],
    embeds: Sequence[Embed],
    reactions: Mapping[str, int],
    names: Names,
) -> SafeString | str:
    """Render everything of a message that stands below its text."""
    if not (attachments or stickers or embeds or reactions):
        return ""
    return fill(
        "{}{}{}{}",
        _draw_attachments(attachments) if attachments else "",
        join(
            fill('<p class="quiet small">\n{}\n</p>\n', fill_named(_("sticker: <bdi>%(name)s</bdi>"), name=sticker))
            for sticker in stickers
        ),
        join(_draw_embed(embed, names) for embed in embeds),
        _draw_reactions(reactions) if reactions else "",
    )


def _draw_attachments(attachments: Iterable[Attachment]) -> SafeString:
    files = fill_each(
        '<li class="file">\n{}\n<span>\n<bdi class="clip">{}</bdi>\n'
        '<span class="quiet small">{}</span>\n</span>\n{}</li>',
        (
            (
                _FILE_ICON,
                draw_link(file.url, show_hidden(file.name)),
                file.facts or _("attachment"),
                _draw_loader(file.url, file.name, file.dimensions) if file.is_image else "",
            )
            for file in attachments
        ),
    )
    return fill('<ul class="files">\n{}\n</ul>\n', files)


def _draw_loader(url: str, name: str, dimensions: tuple[int, int] | None) -> SafeString | str:
    """Render the button with which the script replaces itself by the image; nothing if it must not be loaded."""
    if not may_load(url):
        return ""
    size = fill(' data-width="{}" data-height="{}"', *dimensions) if dimensions else ""
    return fill(
        '<button class="button small script-only" type="button" data-media="{}" data-alt="{}"{}>{}</button>\n',
        url,
        show_hidden(name),
        size,
        _("Show image"),
    )


def _draw_embed(embed: Embed, names: Names) -> SafeString:
    title = show_hidden(embed.title or embed.url)
    return fill(
        '<div class="embed">\n{}{}{}{}{}{}{}</div>\n',
        fill(_EDGE, embed.color) if embed.color else "",
        fill('<bdi class="quiet small">{}</bdi>\n', draw_link(embed.author_url, show_hidden(embed.author)))
        if embed.author
        else "",
        fill("<bdi><b>{}</b></bdi>\n", draw_link(embed.url, title)) if title else "",
        draw_text(embed.text, names) if embed.text else "",
        _draw_fields(embed.fields, names) if embed.fields else "",
        _draw_image(embed.image_url) if embed.image_url else "",
        fill('<bdi class="quiet small">{}</bdi>\n', show_hidden(embed.footer)) if embed.footer else "",
    )


def _draw_fields(fields: Iterable[tuple[str, str]], names: Names) -> SafeString:
    drawn = fill_each(
        '<div>\n<dt dir="auto">{}</dt>\n<dd>\n{}</dd>\n</div>',
        ((show_hidden(name), draw_text(value, names) if value else "") for name, value in fields),
    )
    return fill('<dl class="embed-fields">\n{}\n</dl>\n', drawn)


def _draw_image(url: str) -> SafeString:
    label = _("Image from %(host)s") % {"host": show_hidden(host_of(url)) or _("an unknown host")}
    link = fill('<bdi class="small">{}</bdi>\n', draw_link(url, label))
    return fill("{}{}", link, _draw_loader(url, label, None))


def _draw_reactions(reactions: Mapping[str, int]) -> SafeString:
    drawn = fill_each(
        '<li class="reaction"><bdi class="clip">{}</bdi> <b>{}</b></li>',
        ((_name_emoji(emoji), formats.format_number(count)) for emoji, count in reactions.items()),
    )
    return fill('<ul class="reactions" aria-label="{}">\n{}\n</ul>\n', _("Reactions"), drawn)


def _name_emoji(kept: str) -> str:
    """Return a reaction's emoji: itself, or `:name:` for a guild's own ("name:id")."""
    name, _separator, number = kept.partition(":")
    return show_hidden(f":{name}:" if number.isdigit() and name else kept)
