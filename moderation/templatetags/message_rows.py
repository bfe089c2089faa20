"""Messages of a chat as HTML. A page has hundreds, so they are built here instead of by nested templates.

Everything in them was written by others: each value goes through `fill`, which escapes it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chatstore.domain.controls import show_controls, show_hidden
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import time_of
from chatstore.models import Channel
from moderation.operations.lookup.gaps import Gap
from moderation.operations.preview.manifest import ManifestEntry
from moderation.presentation import formats
from moderation.presentation.extras import Attachment, Embed
from moderation.presentation.html import fill, fill_each, fill_named, join
from moderation.presentation.markup import Piece, is_long, parse_markup, shorten
from moderation.presentation.page_urls import url_of
from moderation.templatetags.chat import clock, dated, emoji_name, visible
from moderation.views.manifest import EntryRow
from moderation.views.purge_preview import SampleGroup
from moderation.views.rows import MessageRow, Quote

register = template.Library()

FOLDED_CHARACTERS = 500

_WRAPS = {
    "bold": "<strong>{}</strong>",
    "italic": "<em>{}</em>",
    "strike": "<s>{}</s>",
    "code": "<code>{}</code>",
    "block": "<pre><code>{}</code></pre>",
    "quote": "<blockquote>{}</blockquote>",
    "emoji": '<span class="emoji">{}</span>',
}

_NOTHING = SafeString("")
_NO_CHECKBOX = SafeString("<span></span>")
_FILE_ICON = SafeString(
    '<svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true">'
    '<path d="M11.5 2.5H5.8A1.3 1.3 0 0 0 4.5 3.8v12.4a1.3 1.3 0 0 0 1.3 1.3h8.4a1.3 1.3 0 0 0 1.3-1.3V6.5z"/>'
    '<path d="M11.5 2.5v4h4"/></svg>'
)
_LINK_ICON = SafeString(
    '<svg viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true">'
    '<path d="M6.7 9.3a2.8 2.8 0 0 0 4 0l2.2-2.2a2.8 2.8 0 1 0-4-4l-.7.7"/>'
    '<path d="M9.3 6.7a2.8 2.8 0 0 0-4 0L3.1 8.9a2.8 2.8 0 1 0 4 4l.7-.7"/></svg>'
)
_DELETE_ICON = SafeString(
    '<svg viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true">'
    '<path d="M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4M9.2 7v4"/></svg>'
)
_GAP_ICON = SafeString(
    '<svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-dasharray="2 2"'
    ' aria-hidden="true"><rect x="1" y="1" width="12" height="12" rx="3"/></svg>'
)


@dataclass(frozen=True, slots=True)
class Page:
    """The page that shows messages, and what its viewer may do there.

    is_sample: the messages are an extract; they have no tools, and each shows its date. focus: the ID of the message
    that the URL names.
    """

    channel_id: int
    users: Mapping[int, Any]
    is_sample: bool
    may_purge: bool
    may_view_users: bool
    may_view_purges: bool
    focus: int | None

    @classmethod
    def of(cls, context: template.Context, channel: Channel, *, is_sample: bool) -> Page:
        """Return the page that a template renders."""
        perms = context["perms"]
        return cls(
            channel_id=channel.pk,
            users=context.get("users") or {},
            is_sample=is_sample,
            may_purge=not is_sample and bool(context.get("may_purge")),
            may_view_users=perms["chatstore"]["view_chatuser"],
            may_view_purges=perms["moderation"]["view_purge"],
            focus=context.get("focus"),
        )


@register.simple_tag(takes_context=True)
def message_rows(context: template.Context, rows: Iterable[MessageRow], channel: Channel) -> SafeString:
    """Render the messages of a channel's page."""
    page = Page.of(context, channel, is_sample=False)
    return join((_draw_row(row, page) for row in rows), "\n")


@register.simple_tag(takes_context=True)
def sample_rows(context: template.Context, group: SampleGroup) -> SafeString:
    """Render samples of a purge with their neighbours; those that will be deleted are marked, and can be selected."""
    page = Page.of(context, group.channel, is_sample=True)
    may_select = bool(context.get("may_confirm"))
    return join(
        _draw_entry(
            _draw_row(item.row, page),
            checkbox=_draw_checkbox(item.row.message.message_id, item.row, form_id="selection")
            if item.is_matched and may_select
            else _NO_CHECKBOX,
            side=fill('<span class="outcome">{}</span>', _("delete") if item.is_matched else _("keep")),
            will_be_deleted=item.is_matched,
        )
        for item in group.rows
    )


@register.simple_tag(takes_context=True)
def manifest_rows(context: template.Context, items: Iterable[EntryRow], form_id: str, headings: bool) -> SafeString:
    """Render messages of a purge with their outcomes. form_id: it selects them. headings: name each channel once."""
    return join(
        part
        for item in items
        for part in (
            _draw_channel(item.new_channel) if headings and item.new_channel else "",
            _draw_manifest_row(item, Page.of(context, item.entry.channel, is_sample=True), form_id),
        )
    )


def _draw_channel(channel: Channel) -> SafeString:
    return fill(
        '<h2 class="in-channel">\n<a href="{}#end"><bdi>{}</bdi></a>\n</h2>\n',
        url_of("timeline", channel.pk),
        visible(channel.full_name),
    )


def _draw_manifest_row(item: EntryRow, page: Page, form_id: str) -> SafeString:
    message_id = item.entry.message_id
    return _draw_entry(
        _draw_row(item.row, page) if item.row else _draw_missing(item.entry),
        checkbox=_draw_checkbox(message_id, item.row, form_id=form_id) if item.may_select else _NO_CHECKBOX,
        side=fill(
            '<span class="outcome">{}</span>\n<a href="{}">{}</a>',
            item.label,
            url_of("message", page.channel_id, message_id),
            fill_named(_('Open<span class="sr"> message %(id)s</span>'), id=message_id),
        ),
        will_be_deleted=item.will_be_deleted,
    )


def _draw_missing(entry: ManifestEntry) -> SafeString:
    text = (
        _('Message <span class="mono">%(id)s</span>, %(posted)s. Its author deleted it, so its text is not shown.')
        if entry.is_withdrawn
        else _('Message <span class="mono">%(id)s</span>, %(posted)s. There is no copy of its text.')
    )
    posted = dated(time_of(entry.message_id))
    return fill('<p class="quiet">\n{}\n</p>', fill_named(text, id=entry.message_id, posted=posted))


def _draw_entry(content: SafeString, *, checkbox: SafeString, side: SafeString, will_be_deleted: bool) -> SafeString:
    return fill(
        '<div class="entry{}">\n{}\n{}\n<p class="entry-side small">\n{}\n</p>\n</div>\n',
        " to-delete" if will_be_deleted else "",
        checkbox,
        content,
        side,
    )


@register.simple_tag(takes_context=True)
def message_sample(context: template.Context, row: MessageRow, channel: Channel) -> SafeString:
    """Render a message outside its channel's page."""
    return _draw_row(row, Page.of(context, channel, is_sample=True))


@register.simple_tag(takes_context=True)
def gap_rows(context: template.Context, gaps: Iterable[Gap]) -> SafeString:
    """Render the gaps that purges left in one place."""
    return _draw_gaps(gaps, may_view_purges=context["perms"]["moderation"]["view_purge"])


def _draw_row(row: MessageRow, page: Page) -> SafeString:
    message = row.message
    return fill(
        '{}{}<article class="msg{}{}" id="m{}" data-bucket="{}">\n{}\n{}\n'
        '<div class="msg-body">\n{}{}{}{}{}\n</div>\n{}</article>',
        _draw_day(row.day) if row.day else "",
        _draw_gaps(row.gaps, may_view_purges=page.may_view_purges) if row.gaps else "",
        " continued" if row.continued else "",
        " focus" if message.message_id == page.focus else "",
        message.message_id,
        message.bucket,
        _draw_checkbox(message.message_id, row, form_id="selection")
        if page.may_purge
        else (_NOTHING if page.is_sample else _NO_CHECKBOX),
        _draw_margin(row),
        _draw_quote(row.quote, page) if row.quote else "",
        _draw_heading(row, page),
        _draw_content(row, page),
        _draw_marks(message) if message.pinned or message.edited_at else "",
        _draw_extras(row, page),
        _NOTHING if page.is_sample else _draw_tools(row, page),
    )


def _draw_day(day: dt.date) -> SafeString:
    return fill('<h2 class="day" data-day="{}">{}</h2>\n', day.isoformat(), formats.format_day(day))


def _draw_gaps(gaps: Iterable[Gap], *, may_view_purges: bool) -> SafeString:
    return join(_draw_gap(gap, url_of("purge", gap.purge_id) if may_view_purges else "") for gap in gaps)


def _draw_gap(gap: Gap, url: str) -> SafeString:
    text = fill_named(
        _("%(messages)s deleted %(at)s by %(moderator)s"),
        messages=formats.format_count(gap.count, "message"),
        at=dated(gap.at),
        moderator=gap.moderator,
    )
    link = fill('· <a href="{}">{}</a>', url, _("View purge")) if url else ""
    return fill('<p class="gap">\n{}\n<span>\n{}\n{}\n</span>\n</p>\n', _GAP_ICON, text, link)


def _draw_checkbox(message_id: int, row: MessageRow | None, *, form_id: str) -> SafeString:
    """Render what selects a message. row: None if there is no copy of the message."""
    label = (
        _("Select the message by %(name)s, %(time)s")
        % {"name": row.writer.name, "time": formats.format_datetime(row.message.posted_at)}
        if row
        else _("Select message %(id)s") % {"id": message_id}
    )
    return fill(
        '<label class="select-box">\n<input class="select-input" type="checkbox" name="message_id" value="{}"'
        ' form="{}" aria-label="{}">\n</label>',
        message_id,
        form_id,
        label,
    )


def _draw_margin(row: MessageRow) -> SafeString:
    """Render what is beside a message: its author's avatar, or its time if it continues a run."""
    if row.continued:
        return fill('<span class="when" aria-hidden="true">{}</span>', formats.format_clock(row.message.posted_at))
    return fill('<span class="avatar tone{}" aria-hidden="true">{}</span>', row.writer.tone, row.writer.initial)


def _draw_quote(quote: Quote, page: Page) -> SafeString:
    if not quote.writer:
        text = _("Replying to %(message)s") % {"message": quote.text}
        return fill('<p class="quote">\n<span class="clip">{}</span>\n</p>\n', text)
    return fill(
        '<p class="quote">\n<bdi class="author clip">{}</bdi>\n'
        '<a class="clip" href="{}?around={}#m{}">\n<bdi>{}</bdi>\n</a>\n</p>\n',
        quote.writer.name,
        url_of("timeline", page.channel_id),
        quote.message_id,
        quote.message_id,
        quote.text,
    )


def _draw_heading(row: MessageRow, page: Page) -> SafeString:
    message, writer = row.message, row.writer
    tag = _("webhook") if writer.is_webhook else _("bot") if writer.is_bot else ""
    return fill(
        '<header class="msg-head{}">\n{}\n{}{}\n</header>\n',
        " sr" if row.continued else "",
        fill('<a class="author" href="{}"><bdi>{}</bdi></a>', url_of("user", writer.user_id), writer.name)
        if page.may_view_users and not writer.is_webhook
        else fill('<bdi class="author">{}</bdi>', writer.name),
        fill('<span class="tag">{}</span>\n', tag) if tag else "",
        dated(message.posted_at)
        if page.is_sample
        else fill(
            '<a class="quiet" href="{}">{}</a>',
            url_of("message", page.channel_id, message.message_id),
            clock(message.posted_at),
        ),
    )


def _draw_content(row: MessageRow, page: Page) -> SafeString:
    system = (
        fill(
            '<p class="quiet">\n{}\n</p>\n',
            fill_named(_("<bdi>%(author)s</bdi> %(event)s"), author=row.writer.name, event=row.system),
        )
        if row.system
        else ""
    )
    text = _draw_text(row.message.content, page.users) if row.message.content else ""
    wordless = fill('<p class="quiet">{}</p>\n', _("a message without text")) if row.is_wordless else ""
    return fill("{}{}{}", system, text, wordless)


def _draw_text(text: str, users: Mapping[int, Any]) -> SafeString:
    """Render the text of a message; long texts are folded."""
    if not is_long(text):
        return fill('<div class="text" dir="auto">{}</div>\n', _draw_pieces(parse_markup(text), users))
    beginning = shorten(text, characters=FOLDED_CHARACTERS, lines=8)
    return fill(
        '<details class="long"><summary><span class="text" dir="auto">{}…</span> '
        '<span class="unfold">{}</span></summary>'
        '<div class="text" dir="auto">{}</div></details>\n',
        show_controls(beginning),
        _("Show all %(count)s characters") % {"count": formats.format_number(len(text))},
        _draw_pieces(parse_markup(text), users),
    )


def _draw_pieces(pieces: Iterable[Piece], users: Mapping[int, Any]) -> SafeString:
    return join(_draw_piece(piece, users) for piece in pieces)


def _draw_piece(piece: Piece, users: Mapping[int, Any]) -> SafeString | str:
    if piece.kind == "link":
        return fill('<a href="{}" rel="noreferrer noopener nofollow">{}</a>', piece.target, piece.text)
    if piece.kind == "control":
        title = _("an invisible character, shown by its name")
        return fill('<span class="control" title="{}">{}</span>', title, piece.text)
    if piece.kind == "user":
        known = users.get(int(piece.target))
        name = show_hidden(str(known)) if known else _("user %(id)s") % {"id": piece.target}
        return fill('<bdi class="mention">@{}</bdi>', name)
    if piece.kind == "channel":
        return fill('<bdi class="mention">#{}</bdi>', piece.target)
    wrap = _WRAPS.get(piece.kind)
    return fill(wrap, piece.text) if wrap else piece.text


def _draw_marks(message: Message) -> SafeString:
    edited = (
        fill(
            '<span class="quiet small">{}</span>\n',
            fill_named(_("edited %(edited_at)s"), edited_at=dated(message.edited_at)),
        )
        if message.edited_at
        else ""
    )
    pinned = fill('<span class="tag plain">{}</span>\n', _("pinned")) if message.pinned else ""
    return fill('<p class="row">\n{}{}</p>\n', edited, pinned)


def _draw_extras(row: MessageRow, page: Page) -> SafeString | str:
    reactions = row.message.reactions
    if not (row.attachments or row.stickers or row.embeds or reactions):
        return ""
    return fill(
        "{}{}{}{}",
        _draw_attachments(row.attachments) if row.attachments else "",
        join(
            fill('<p class="quiet small">\n{}\n</p>\n', fill_named(_("sticker: <bdi>%(name)s</bdi>"), name=sticker))
            for sticker in row.stickers
        ),
        join(_draw_embed(embed, page) for embed in row.embeds),
        _draw_reactions(reactions) if reactions else "",
    )


def _draw_attachments(attachments: Iterable[Attachment]) -> SafeString:
    files = fill_each(
        '<li class="file">\n{}\n<span>\n<bdi class="clip">{}</bdi>\n'
        '<span class="quiet small">{}</span>\n</span>\n</li>',
        (
            (_FILE_ICON, _draw_link(file.url, show_hidden(file.name)), file.formatted_size or _("attachment"))
            for file in attachments
        ),
    )
    return fill('<ul class="files">\n{}\n</ul>\n', files)


def _draw_link(url: str, text: str) -> SafeString | str:
    return fill('<a href="{}" rel="noreferrer noopener nofollow">{}</a>', url, text) if url else text


def _draw_embed(embed: Embed, page: Page) -> SafeString:
    title = show_hidden(embed.title or embed.url)
    return fill(
        '<div class="embed">\n{}{}{}</div>\n',
        fill('<bdi class="quiet small">{}</bdi>\n', show_hidden(embed.author)) if embed.author else "",
        fill("<bdi><b>{}</b></bdi>\n", _draw_link(embed.url, title)) if title else "",
        _draw_text(embed.text, page.users) if embed.text else "",
    )


def _draw_reactions(reactions: Mapping[str, int]) -> SafeString:
    drawn = fill_each(
        '<li class="reaction"><bdi class="clip">{}</bdi> <b>{}</b></li>',
        ((emoji_name(emoji), formats.format_number(count)) for emoji, count in reactions.items()),
    )
    return fill('<ul class="reactions" aria-label="{}">\n{}\n</ul>\n', _("Reactions"), drawn)


def _draw_tools(row: MessageRow, page: Page) -> SafeString:
    delete: SafeString | str = ""
    if page.may_purge and not row.continued:
        delete = fill(
            '<a href="{}?authors={}" title="{}" aria-label="{}">\n{}\n</a>\n',
            url_of("compose", page.channel_id),
            row.message.author_id,
            _("Delete messages by this author …"),
            _("Delete messages by %(author)s in this channel") % {"author": row.writer.name},
            _DELETE_ICON,
        )
    return fill(
        '<div class="tools">\n<a href="{}" data-copy title="{}" aria-label="{}">\n{}\n</a>\n{}</div>\n',
        url_of("message", page.channel_id, row.message.message_id),
        _("Copy link"),
        _("Copy the link to this message"),
        _LINK_ICON,
        delete,
    )
