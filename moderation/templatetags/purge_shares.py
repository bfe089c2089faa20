"""Parts of a purge by author and by channel as HTML, with what narrows a preview to them, or restores them."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from moderation.operations.preview.breakdown import AuthorShare, ChannelShare
from moderation.presentation.formats import format_number
from moderation.presentation.html import dotted, fill, fill_named, join
from moderation.presentation.page_urls import url_of
from moderation.presentation.people import name_unknown
from moderation.templatetags.chat import visible
from moderation.templatetags.people import account_facts, avatar

register = template.Library()

NAME_CHARACTERS = 40
"""Characters of an author's name on a button."""

_COUNT = '<td role="cell" class="num" data-label="{}">\n{}\n</td>\n'
_NOTE = '<span class="quiet small">{}</span>'


@register.simple_tag(takes_context=True)
def author_shares(context: template.Context, authors: Iterable[AuthorShare]) -> SafeString:
    """Render the number of messages of each author, with a bar."""
    return join([_draw_author(author, context) for author in authors])


def _draw_author(author: AuthorShare, context: template.Context) -> SafeString:
    purge, manifest, user = context["purge"], context["preview"], author.user
    name = visible(user or name_unknown(author.user_id))
    shown = format_number(author.count)
    who = (
        fill('<a class="author" href="{}"><bdi>{}</bdi></a>', url_of("user", author.user_id), name)
        if context["perms"]["chatstore"]["view_chatuser"]
        else fill("<bdi>{}</bdi>", name)
    )
    count = ngettext(
        '%(shown)s<span class="sr"> message</span>', '%(shown)s<span class="sr"> messages</span>', author.count
    )
    is_alone = manifest.author_count == 1
    return fill(
        '<div class="share">\n<span class="person-line">\n{}<span class="person">\n{}\n{}</span>\n</span>\n'
        '<a href="{}?author={}">{}</a>\n<progress max="{}" value="{}" aria-label="{}: {}"></progress>\n{}{}</div>\n',
        avatar(user, "s") if user else "",
        who,
        fill('<bdi class="dotted quiet small">{}</bdi>\n', dotted(account_facts(user))) if user else "",
        url_of("purge_messages", purge.pk),
        author.user_id,
        fill_named(count, shown=shown),
        context["shown_in_all"] or 1,
        author.count,
        name,
        shown,
        _draw_narrowing(author, name) if context["may_confirm"] and author.count and not is_alone else "",
        _draw_restore(author, name, context) if context["undo"].may_undo and not is_alone else "",
    )


def _draw_narrowing(author: AuthorShare, name: str) -> SafeString:
    """Render the buttons of the form that narrows a preview."""
    return fill(
        '<div class="share-foot narrowing">\n{}{}</div>\n',
        _draw_button("keep_author", author.user_id, _("Keep this author"), _("Keep this author: %(who)s"), name),
        _draw_button("only_author", author.user_id, _("Only this author"), _("Only this author: %(who)s"), name),
    )


def _draw_button(action: str, value: int, text: str, label: str, who: str) -> SafeString:
    return fill(
        '<button class="button small" form="narrow" name="{}" value="{}" aria-label="{}">{}</button>\n',
        action,
        value,
        label % {"who": who},
        text,
    )


def _draw_restore(author: AuthorShare, name: str, context: template.Context) -> SafeString:
    if author.is_restored or author.is_held:
        note = fill(_NOTE, _("restored") if author.is_restored else _("kept by a hold"))
        return fill('<div class="share-foot">\n{}\n</div>\n', note)
    # Without a number where some of the author's messages may have been kept: the page of the undo has it.
    pattern = (
        ngettext("Restore %(who)s (%(shown)s)", "Restore %(who)s (%(shown)s)", author.count)
        if context["is_exact_by_author"]
        else _("Restore %(who)s")
    )
    return fill(
        '<div class="share-foot">\n<a class="button small" href="{}?author={}">{}</a>\n</div>\n',
        url_of("purge_undo", context["purge"].pk),
        author.user_id,
        pattern % {"who": Truncator(name).chars(NAME_CHARACTERS), "shown": format_number(author.count)},
    )


@register.simple_tag(takes_context=True)
def channel_shares(
    context: template.Context,
    shares: Iterable[ChannelShare],
    included_label: str,
    restored_label: str,
    kept_label: str,
) -> SafeString:
    """Render the number of messages of each channel as a row. The labels are those of its columns."""
    hidden = _("a channel you cannot open")
    labels = included_label, restored_label, kept_label
    return join([_draw_channel(share, context, hidden, labels) for share in shares])


def _draw_channel(
    share: ChannelShare, context: template.Context, hidden: str, labels: tuple[str, str, str]
) -> SafeString:
    included_label, restored_label, kept_label = labels
    channel, matched = share.channel, format_number(share.matched)
    name = visible(channel.full_name) if channel else hidden
    return fill(
        '<tr role="row">\n<td role="cell">\n{}\n</td>\n<td role="cell" class="num" data-label="{}">\n{}\n</td>\n'
        "{}{}{}</tr>\n",
        fill('<a href="{}?at={}">\n<bdi>{}</bdi>\n</a>', url_of("timeline", channel.pk), share.at, name)
        if channel
        else fill('<span class="quiet">{}</span>', name),
        included_label,
        fill('<a href="{}?channel={}">{}</a>', url_of("purge_messages", context["purge"].pk), share.channel_id, matched)
        if channel
        else matched,
        fill(_COUNT, restored_label, format_number(share.undone)) if context["shows_restored"] else "",
        fill(_COUNT, kept_label, "—" if share.kept is None else format_number(share.kept)),
        _draw_channel_action(share, name, context),
    )


def _draw_channel_action(share: ChannelShare, name: str, context: template.Context) -> SafeString | str:
    """Render the last cell, if the table has such a column."""
    action: SafeString | str = ""
    if context["undo"].may_undo:
        # Those that their author withdrew, or that another purge deletes too, are not restored.
        back = _("restored") if context["shows_restored"] else _("nothing left to restore")
        note = back if share.is_restored else _("not deleted")
        action = _draw_channel_restore(share, name, context) if share.deleted else fill(_NOTE, note)
    elif context["may_confirm"]:
        label = _("Keep this channel: %(who)s")
        text = _("Keep this channel")
        action = _draw_button("keep_channel", share.channel_id, text, label, name) if share.channel else ""
    else:
        return ""
    return fill('<td role="cell" class="num share-action">\n{}\n</td>\n', action)


def _draw_channel_restore(share: ChannelShare, name: str, context: template.Context) -> SafeString:
    pattern = ngettext(
        'Restore %(shown)s<span class="sr"> message in %(name)s</span>',
        'Restore %(shown)s<span class="sr"> messages in %(name)s</span>',
        share.deleted,
    )
    return fill(
        '<a class="button small" href="{}?channel={}">{}</a>',
        url_of("purge_undo", context["purge"].pk),
        share.channel_id,
        fill_named(pattern, shown=format_number(share.deleted), name=name),
    )
