"""Messages of a chat as HTML. A page has hundreds, so they are built here instead of by nested templates.

Everything in them was written by others: each value goes through `fill`, which escapes it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from django import template
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from chatstore.domain.controls import show_controls, show_hidden
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import time_of
from chatstore.models import Channel, ChatUser
from moderation.domain.outcomes import DeletionStatus
from moderation.operations.lookup.chat_users import account_made_at
from moderation.operations.lookup.mentioned import Mentioned
from moderation.operations.preview.manifest import ManifestEntry
from moderation.presentation import formats
from moderation.presentation.excerpts import unformatted
from moderation.presentation.html import fill, fill_named, join
from moderation.presentation.markup import shorten
from moderation.presentation.member_roles import draw_member_role
from moderation.presentation.page_urls import url_of
from moderation.presentation.people import describe_age
from moderation.presentation.typed_dates import print_typed
from moderation.templatetags.chat import clock, dated, draw_staff_name, visible
from moderation.templatetags.message_extras import draw_extras
from moderation.templatetags.message_text import Names, draw_text
from moderation.templatetags.people import account_title
from moderation.views.manifest import EntryRow
from moderation.views.purge_preview import SampleGroup
from moderation.views.rows import GapLine, MessageRow, Quote, Writer

register = template.Library()

REASON_CHARACTERS = 80
"""Characters of a purge's reason that a gap shows."""

QUOTE_CHARACTERS = 140
"""Characters of the message that a reply refers to."""

_NOTHING = SafeString("")
_NOTHING_MENTIONED = Mentioned()
_NO_CHECKBOX = SafeString("<span></span>")
_REPLY = SafeString(" data-reply")
_GAP_ICON = SafeString(
    '<svg width="15" height="15" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.3"'
    ' aria-hidden="true"><path d="M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4M9.2 7v4"/></svg>'
)


@dataclass(frozen=True, slots=True)
class Labels:
    """Texts that are the same in every row, as HTML. select: with the placeholders `name` and `time`."""

    copy: SafeString
    copy_long: SafeString
    select_author: SafeString
    compose: SafeString
    delete: SafeString
    delete_by: str
    select: str
    to_delete: SafeString
    to_keep: SafeString


@lru_cache(maxsize=64)
def _labels_in(_language: str | None) -> Labels:
    """Return the labels. The language only belongs to the key: Django takes the active one."""
    return Labels(
        copy=fill("{}", _("Copy link")),
        copy_long=fill("{}", _("Copy the link to this message")),
        select_author=fill("{}", _("Select all messages by this author here")),
        compose=fill("{}", _("Delete messages by this author …")),
        delete=fill("{}", _("Delete this message")),
        delete_by=_("Delete messages by %(author)s in this channel"),
        select=_("Select the message by %(name)s, %(time)s"),
        to_delete=fill('<span class="outcome">{}</span>', _("to delete")),
        to_keep=fill('<span class="outcome">{}</span>', _("kept")),
    )


@dataclass(frozen=True, slots=True)
class Page:
    """The page that shows messages, and what its viewer may do there.

    is_sample: the messages are an extract; they have no tools. is_dated: each shows its date. focus: the ID of the
    message that the URL names. headings: those that were drawn, since most authors have several; see `_draw_heading`.
    """

    channel_id: int
    names: Names
    is_sample: bool
    is_dated: bool
    may_purge: bool
    may_view_users: bool
    may_view_purges: bool
    focus: int | None
    labels: Labels
    headings: dict[Writer, tuple[SafeString, SafeString | str]] = field(default_factory=dict)

    @classmethod
    def of(cls, context: template.Context, channel: Channel, *, is_sample: bool, is_dated: bool = True) -> Page:
        """Return the page that a template renders."""
        perms = context["perms"]
        may_view_users = perms["chatstore"]["view_chatuser"]
        return cls(
            channel_id=channel.pk,
            names=_names_of(context, channel),
            is_sample=is_sample,
            is_dated=is_sample and is_dated,
            may_purge=not is_sample and bool(context.get("may_purge")),
            may_view_users=may_view_users,
            may_view_purges=perms["moderation"]["view_purge"],
            focus=context.get("focus"),
            labels=_labels_in(get_language()),
        )


def _names_of(context: template.Context, channel: Channel) -> Names:
    """Return the names that the page has for what messages of a channel mention."""
    mentioned: Mentioned = context.get("mentioned") or _NOTHING_MENTIONED
    return Names(
        users=context.get("users") or {},
        channels=mentioned.channels,
        roles=mentioned.roles_in(channel.guild_id),
        guild_id=channel.guild_id,
        may_view_users=context["perms"]["chatstore"]["view_chatuser"],
    )


@register.simple_tag(takes_context=True)
def message_excerpt(context: template.Context, message: Message, channel: Channel) -> str:
    """Return the beginning of a message's text in one line, without markdown, with the names of what it mentions."""
    return unformatted(message.content, _names_of(context, channel))


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
            checkbox=_draw_checkbox(item.row, page, form_id="selection", effect=_("keep"))
            if item.is_matched and may_select
            else _NO_CHECKBOX,
            side=page.labels.to_delete if item.is_matched else page.labels.to_keep,
            css=DeletionStatus.TO_DELETE if item.is_matched else DeletionStatus.KEPT,
        )
        for item in group.rows
    )


_INCLUDED_AGAIN = "included-again"
"""ID of the form that ends the exclusion of messages from a preview."""


@register.simple_tag(takes_context=True)
def manifest_rows(context: template.Context, items: Iterable[EntryRow], form_id: str, headings: bool) -> SafeString:
    """Render messages of a purge with their outcomes. form_id: it selects them. headings: name each channel once."""
    drawn: list[SafeString] = []
    page: Page | None = None
    may_undo = context["may_undo"]
    effect = _("include") if form_id == _INCLUDED_AGAIN else _("restore") if may_undo else _("keep")
    for item in items:
        channel = item.entry.channel
        if page is None or page.channel_id != channel.pk:
            page = Page.of(context, channel, is_sample=True)
        if headings and item.new_channel:
            drawn.append(_draw_channel(item.new_channel, context))
        restore = _draw_restore(context["purge"].pk, item) if may_undo and item.may_select else ""
        checkbox = _draw_manifest_checkbox(item, page, form_id, effect) if item.may_select else _NO_CHECKBOX
        drawn.append(_draw_manifest_row(item, page, checkbox, restore))
    return join(drawn)


def _draw_channel(channel: Channel, context: template.Context) -> SafeString:
    name, purge = visible(channel.full_name), context["purge"]
    narrow = fill(
        '<a class="button small" href="{}?channel={}">{}</a>\n',
        url_of("purge_messages", purge.pk),
        channel.pk,
        fill_named(_('Show only this channel<span class="sr">: %(name)s</span>'), name=name),
    )
    return fill(
        '<div class="in-channel row">\n<h2>\n<a href="{}#end"><bdi>{}</bdi></a>\n</h2>\n{}</div>\n',
        url_of("timeline", channel.pk),
        name,
        "" if context["channel_id"] or context["import_id"] or not context["has_several_channels"] else narrow,
    )


def _draw_restore(purge_id: int, item: EntryRow) -> SafeString:
    """Link to the page that restores one message."""
    message_id = item.entry.message_id
    label = fill_named(_('Restore …<span class="sr"> message %(id)s</span>'), id=message_id)
    return fill('<a href="{}?message_id={}">{}</a>\n', url_of("purge_undo", purge_id), message_id, label)


def _draw_manifest_row(item: EntryRow, page: Page, checkbox: SafeString, restore: SafeString | str) -> SafeString:
    message_id = item.entry.message_id
    return _draw_entry(
        _draw_row(item.row, page) if item.row else _draw_missing(item.entry),
        checkbox=checkbox,
        side=fill(
            '<span class="outcome">{}</span>\n{}<a href="{}">{}</a>',
            item.label,
            restore,
            url_of("message", page.channel_id, message_id),
            fill_named(_('Open<span class="sr"> message %(id)s</span>'), id=message_id),
        ),
        css=item.css,
    )


def _draw_manifest_checkbox(item: EntryRow, page: Page, form_id: str, effect: str) -> SafeString:
    if item.row:
        return _draw_checkbox(item.row, page, form_id=form_id, effect=effect)
    # There is no copy of the message.
    message_id = item.entry.message_id
    return _checkbox(message_id, form_id, _("Select message %(id)s") % {"id": message_id}, effect)


def _draw_missing(entry: ManifestEntry) -> SafeString:
    text = (
        _('Message <span class="mono">%(id)s</span>, %(posted)s. Its author deleted it, so its text is not shown.')
        if entry.is_withdrawn
        else _('Message <span class="mono">%(id)s</span>, %(posted)s. There is no copy of its text.')
    )
    posted = dated(time_of(entry.message_id))
    return fill('<p class="quiet">\n{}\n</p>', fill_named(text, id=entry.message_id, posted=posted))


def _draw_entry(content: SafeString, *, checkbox: SafeString, side: SafeString, css: str) -> SafeString:
    return fill(
        '<div class="entry {}">\n{}\n{}\n<p class="entry-side small">\n{}\n</p>\n</div>\n',
        css,
        checkbox,
        content,
        side,
    )


@register.simple_tag(takes_context=True)
def message_sample(
    context: template.Context, row: MessageRow, channel: Channel, *, is_dated: bool = True
) -> SafeString:
    """Render a message outside its channel's page. is_dated: with its date, for one without its day's heading above."""
    return _draw_row(row, Page.of(context, channel, is_sample=True, is_dated=is_dated))


@register.simple_tag(takes_context=True)
def gap_rows(context: template.Context, gaps: Iterable[GapLine]) -> SafeString:
    """Render the gaps that purges left in one place."""
    return _draw_gaps(gaps, may_view_purges=context["perms"]["moderation"]["view_purge"])


def _draw_row(row: MessageRow, page: Page) -> SafeString:
    """Render a message. Only its class says if it continues a run: the script changes it as rows join or leave."""
    message = row.message
    return fill(
        '{}{}<article class="msg{}{}" id="m{}" data-bucket="{}" data-author="{}"{}>\n{}\n{}\n'
        '<div class="msg-body">\n{}{}{}{}{}\n</div>\n{}</article>',
        # Above the heading, between the days: on which of them these were posted is not looked up.
        _draw_gaps(row.gaps, may_view_purges=page.may_view_purges) if row.gaps else "",
        _draw_day(row.day) if row.day else "",
        " continued" if row.continued else "",
        " focus" if message.message_id == page.focus else "",
        message.message_id,
        message.bucket,
        message.author_id,
        _NOTHING if message.reference is None else _REPLY,
        _draw_checkbox(row, page, form_id="selection") if page.may_purge else _NOTHING,
        _draw_margin(row),
        _draw_quote(row.quote, page) if row.quote else "",
        _draw_heading(row, page),
        _draw_content(row, page),
        _draw_marks(message) if message.pinned or message.edited_at else "",
        draw_extras(row.attachments, row.stickers, row.embeds, message.reactions, page.names),
        _NOTHING if page.is_sample else _draw_tools(row, page),
    )


def _draw_day(day: dt.date) -> SafeString:
    """Render the heading of a day, with the day as the field of the timeline's date has it."""
    pattern = '<h2 class="day" data-day="{}" data-typed="{}">{}</h2>\n'
    return fill(pattern, day.isoformat(), print_typed(day.isoformat()), formats.format_day(day))


def _draw_gaps(lines: Iterable[GapLine], *, may_view_purges: bool) -> SafeString:
    return join(_draw_gap(line, may_view_purges=may_view_purges) for line in lines)


def _draw_gap(line: GapLine, *, may_view_purges: bool) -> SafeString:
    """Render a gap in its place, and before it, if the line stands for all gaps of the purge, one line for these."""
    gap = line.gap
    may_view_purges = may_view_purges and gap.is_visible
    if line.is_part:
        text = _("%(messages)s deleted here") % {"messages": formats.format_count(gap.count, "message")}
        return fill('<p class="gap part" data-purge="{}">\n{}\n<span>{}</span>\n</p>\n', gap.purge_id, _GAP_ICON, text)
    reason = show_hidden(shorten(gap.reason, characters=REASON_CHARACTERS, lines=1)) if may_view_purges else ""
    pattern = _("%(messages)s deleted %(at)s by %(moderator)s")
    if reason:
        pattern = _("%(messages)s deleted %(at)s by %(moderator)s: “%(reason)s”")
    elif not gap.is_visible:
        pattern = _("%(messages)s deleted %(at)s by %(moderator)s, in a purge that includes places you cannot see")
    text = fill_named(
        pattern,
        messages=formats.format_count(line.total, "message"),
        at=dated(gap.at),
        moderator=draw_staff_name(gap.moderator),
        reason=reason,
    )
    link = (
        fill('<a href="{}" data-panel>{}</a>', url_of("purge", gap.purge_id), _("View purge"))
        if may_view_purges
        else ""
    )
    in_all = _draw_in_all(gap.in_all) if may_view_purges and gap.in_all and gap.in_all > line.total else ""
    return fill(
        '<p class="gap{}" data-purge="{}" data-total="{}">\n{}\n'
        '<span class="gap-line">\n<span>{}</span>\n<span class="gap-line">\n{}\n{}\n{}\n</span>\n</span>\n</p>\n',
        "" if line.is_collapsed else " single",
        gap.purge_id,
        line.total,
        _GAP_ICON,
        text,
        in_all,
        _draw_gap_toggle(gap.purge_id),
        link,
    )


def _draw_in_all(count: int) -> SafeString:
    """Render the number of messages that a purge deleted, of which the page shows the place of some."""
    text = _("%(count)s in the whole purge") % {"count": formats.format_number(count)}
    return fill('<span data-in-all="{}">{}</span>', count, text)


def _draw_gap_toggle(purge_id: int) -> SafeString:
    return fill(
        '<button class="gap-toggle script-only as-link" type="button" data-gaps="{}" data-hide="{}"'
        ' aria-expanded="false">{}</button>',
        purge_id,
        _("Hide gaps"),
        _("Show gaps"),
    )


def _draw_checkbox(row: MessageRow, page: Page, *, form_id: str, effect: str = "") -> SafeString:
    """Render what selects a message. effect: what that does to it, unless it can be one of several things."""
    names = {"name": row.writer.name, "time": formats.format_datetime(row.message.posted_at)}
    return _checkbox(row.message.message_id, form_id, page.labels.select % names, effect)


def _checkbox(message_id: int, form_id: str, label: str, effect: str) -> SafeString:
    return fill(
        '<label class="select-box">\n<input class="select-input" type="checkbox" name="message_id" value="{}"'
        ' form="{}" aria-label="{}">\n{}</label>',
        message_id,
        form_id,
        f"{effect}: {label}" if effect else label,
        fill("<span>{}</span>\n", effect) if effect else "",
    )


def _draw_margin(row: MessageRow) -> SafeString:
    """Render what is beside a message: its author's avatar, and its time, shown instead if it continues a run."""
    return fill(
        '<span class="avatar tone{}" aria-hidden="true">{}</span>\n<span class="when" aria-hidden="true">{}</span>',
        row.writer.tone,
        row.writer.initials,
        formats.format_clock(row.message.posted_at),
    )


def _draw_quote(quote: Quote, page: Page) -> SafeString:
    if not quote.writer:
        text = _("Replying to %(message)s") % {"message": quote.text}
        return fill('<p class="quote">\n<span class="clip">{}</span>\n</p>\n', text)
    text = unformatted(quote.text, page.names)
    person = None if quote.writer.is_webhook else page.names.users.get(quote.writer.user_id)
    return fill(
        '<p class="quote">\n<span class="avatar xs tone{}" aria-hidden="true">{}</span>\n'
        '<bdi class="author clip">{}</bdi>\n{}<a class="clip" href="{}?around={}#m{}">\n<bdi>{}</bdi>\n</a>\n</p>\n',
        quote.writer.tone,
        quote.writer.initials[:1],
        quote.writer.name,
        fill('<bdi class="handle clip">{}</bdi>\n', show_hidden(person.distinct_handle))
        if person and person.is_ambiguous
        else "",
        url_of("timeline", page.channel_id),
        quote.message_id,
        quote.message_id,
        show_controls(shorten(text, characters=QUOTE_CHARACTERS)) or _("an attachment"),
    )


def _draw_heading(row: MessageRow, page: Page) -> SafeString:
    """Render the author, and the time between their name and the age of their account."""
    known = page.headings.get(row.writer)
    if known is None:
        known = page.headings[row.writer] = _introduce(row.writer, page)
    named, age = known
    return fill('<header class="msg-head">\n{}{}{}\n</header>\n', named, _draw_time(row.message, page), age)


def _introduce(writer: Writer, page: Page) -> tuple[SafeString, SafeString | str]:
    """Return the author with what tells them apart, and the age of their account: they are drawn in two places."""
    tag = _("webhook") if writer.is_webhook else _("bot") if writer.is_bot else ""
    person = None if writer.is_webhook else page.names.users.get(writer.user_id)
    name = (
        _draw_author(writer, person)
        if page.may_view_users and not writer.is_webhook
        else fill('<bdi class="author">{}</bdi>', writer.name)
    )
    named = fill('{}\n<span class="tag">{}</span>', name, tag) if tag else name
    introduced = fill(
        "{}\n{}",
        _draw_named(named, handle) if person and (handle := person.handle_beside(writer.name)) else named,
        fill("{}\n", draw_member_role(writer.role)) if writer.role else "",
    )
    return introduced, _draw_age(person) if person else ""


def _draw_author(writer: Writer, person: ChatUser | None) -> SafeString:
    """Render the name as a link. Its title tells those apart who share the name."""
    url = url_of("user", writer.user_id)
    title = account_title(person) if person else writer.user_id
    return fill('<a class="author" href="{}" title="{}"><bdi>{}</bdi></a>', url, title, writer.name)


def _draw_named(name: SafeString, handle: str) -> SafeString:
    """Render beside the name the handle, which tells those apart who share the name."""
    pattern = '<span class="named">\n{}\n<bdi class="handle quiet">{}</bdi>\n</span>'
    return fill(pattern, name, show_hidden(handle))


def _draw_age(person: ChatUser) -> SafeString | str:
    """Render the account's age, after the time of the message so that it is not taken for it. Phones have no room."""
    made_at = account_made_at(person.pk, now=timezone.now())
    return fill('\n<span class="age quiet">{}</span>', describe_age(made_at)) if made_at else ""


def _draw_time(message: Message, page: Page) -> SafeString:
    if page.is_dated:
        return dated(message.posted_at)
    time = clock(message.posted_at)
    if page.is_sample:
        return time
    return fill('<a class="quiet" href="{}">{}</a>', url_of("message", page.channel_id, message.message_id), time)


def _draw_content(row: MessageRow, page: Page) -> SafeString:
    text = draw_text(row.message.content, page.names) if row.message.content else _NOTHING
    if row.system:
        event = fill_named(_("<bdi>%(author)s</bdi> %(event)s"), author=row.writer.name, event=row.system)
        return fill('<p class="quiet">\n{}\n</p>\n{}', event, text)
    if row.is_wordless:
        return fill('<p class="quiet">{}</p>\n', _("a message without text"))
    return text


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


def _draw_tools(row: MessageRow, page: Page) -> SafeString:
    """Render a message's tools, whose buttons belong to the page's forms."""
    labels, message = page.labels, row.message
    more = (
        fill(
            '<button class="icon select script-only" type="button" data-select-author title="{}" aria-label="{}">'
            '</button>\n<a class="icon compose" href="{}?authors={}" title="{}" aria-label="{}"></a>\n'
            '<button class="icon delete" form="delete-one" name="message_id" value="{}" title="{}" aria-label="{}">'
            "</button>\n",
            labels.select_author,
            labels.select_author,
            url_of("compose", page.channel_id),
            message.author_id,
            labels.compose,
            labels.delete_by % {"author": row.writer.name},
            message.message_id,
            labels.delete,
            labels.delete,
        )
        if page.may_purge
        else ""
    )
    return fill(
        '<div class="tools">\n<a class="icon link" href="{}" data-copy title="{}" aria-label="{}"></a>\n{}</div>\n',
        url_of("message", page.channel_id, message.message_id),
        labels.copy,
        labels.copy_long,
        more,
    )
