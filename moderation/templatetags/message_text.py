"""Text of messages as HTML: each piece of the markup is put through `fill`, which escapes it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chatstore.domain.controls import show_controls, show_hidden
from moderation.presentation import formats
from moderation.presentation.excerpts import Known, name_role, name_user, plain_text
from moderation.presentation.html import fill, join
from moderation.presentation.markup import Piece, host_of, is_long, parse_markup, shorten
from moderation.presentation.page_urls import url_of
from moderation.templatetags.chat import dated
from moderation.templatetags.people import account_title

FOLDED_CHARACTERS = 500

_WRAPS = {
    "code": "<code>{}</code>",
    "block": "<pre><code>{}</code></pre>",
    "emoji": '<span class="emoji">{}</span>',
    "everyone": '<b class="mention">{}</b>',
}
_FRAMES = {
    "bold": "<strong>{}</strong>",
    "italic": "<em>{}</em>",
    "underline": '<span class="underline">{}</span>',
    "strike": "<s>{}</s>",
    "quote": "<blockquote>{}</blockquote>",
    "subtext": '<span class="subtext">{}</span>',
    "list": "<ul>{}</ul>",
}
_ATTRIBUTE_FRAMES = {
    "heading": '<strong class="heading level{}">{}</strong>',
    "numbered": '<ol start="{}">{}</ol>',
    "item": '<li class="level{}">{}</li>',
}
"""Frames with an attribute, whose value is a number."""


@dataclass(frozen=True, slots=True)
class Names(Known):
    """What a text may mention, and the guild of the channel that it is shown in.

    mentions: those of users that were drawn, by ID, since a text may mention one user hundreds of times.
    """

    guild_id: int | None
    may_view_users: bool
    mentions: dict[int, SafeString] = field(default_factory=dict)


def draw_text(text: str, names: Names) -> SafeString:
    """Render the text of a message; long texts are folded."""
    if not is_long(text):
        return fill('<div class="text" dir="auto">{}</div>\n', _draw_pieces(parse_markup(text), names))
    beginning = shorten(plain_text(text, names), characters=FOLDED_CHARACTERS, lines=8)
    return fill(
        '<details class="long"><summary><span class="text" dir="auto">{}…</span> '
        '<span class="unfold">{}</span></summary>'
        '<div class="text" dir="auto">{}</div></details>\n',
        show_controls(beginning),
        _("Show all %(count)s characters") % {"count": formats.format_number(len(text))},
        _draw_pieces(parse_markup(text), names),
    )


def draw_link(url: str, text: str) -> SafeString | str:
    """Render a link to another site, which learns nothing of ours; the text alone if there is no URL."""
    return fill('<a href="{}" rel="noreferrer noopener nofollow">{}</a>', url, text) if url else text


def _draw_pieces(pieces: Iterable[Piece], names: Names) -> SafeString:
    return join([_draw_piece(piece, names) for piece in pieces])


def _draw_piece(piece: Piece, names: Names) -> SafeString | str:  # noqa: PLR0911  one for each kind
    match piece.kind:
        case "text":
            return piece.text
        case "link":
            return draw_link(piece.target, piece.text)
        case "masked":
            host = fill('<bdi class="host">{}</bdi>', show_hidden(host_of(piece.target)))
            return fill("{} {}", draw_link(piece.target, piece.text), host)
        case "control":
            title = _("an invisible character, shown by its name")
            return fill('<span class="control" title="{}">{}</span>', title, piece.text)
        case "user":
            return _draw_user(int(piece.target), names)
        case "role":
            return fill('<bdi class="mention">{}</bdi>', show_hidden(name_role(int(piece.target), names.roles)))
        case "channel":
            return _draw_channel(int(piece.target), names)
        case "time":
            return dated(dt.datetime.fromtimestamp(int(piece.target), tz=dt.UTC))
    if piece.kind in _WRAPS:
        return fill(_WRAPS[piece.kind], piece.text)
    return _draw_frame(piece, _draw_pieces(piece.parts, names))


def _draw_frame(piece: Piece, content: SafeString) -> SafeString:
    if piece.kind == "spoiler":
        return fill('<span class="spoiler" tabindex="0" title="{}"><span>{}</span></span>', _("Spoiler"), content)
    if piece.kind in _ATTRIBUTE_FRAMES:
        return fill(_ATTRIBUTE_FRAMES[piece.kind], int(piece.target), content)
    return fill(_FRAMES[piece.kind], content)


def _draw_user(user_id: int, names: Names) -> SafeString:
    known = names.mentions.get(user_id)
    if known is None:
        known = names.mentions[user_id] = _draw_mention(user_id, names)
    return known


def _draw_mention(user_id: int, names: Names) -> SafeString:
    """Render a user by their name. The title of a known one tells those apart who share the name."""
    person, name = names.users.get(user_id), show_hidden(name_user(user_id, names.users))
    title = fill(' title="{}"', account_title(person)) if person else ""
    if not names.may_view_users:
        return fill('<bdi class="mention"{}>{}</bdi>', title, name)
    pattern = '<a class="mention user-mention" href="{}"{}><bdi>{}</bdi></a>'
    return fill(pattern, url_of("user", user_id), title, name)


def _draw_channel(channel_id: int, names: Names) -> SafeString:
    """Render a channel by its name; with its guild if that is another one."""
    channel = names.channels.get(channel_id)
    if channel is None:
        return fill('<bdi class="mention">#{}</bdi>', channel_id)
    name = str(channel) if channel.guild_id == names.guild_id else channel.full_name
    return fill(
        '<a class="mention" href="{}#end" title="{}"><bdi>{}</bdi></a>',
        url_of("timeline", channel_id),
        show_hidden(channel.full_name),
        show_hidden(name),
    )
