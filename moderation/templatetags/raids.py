"""Template tag of raids: the list of accounts."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from moderation.presentation import formats
from moderation.presentation.html import dotted, fill, fill_named, join
from moderation.presentation.markup import shorten
from moderation.presentation.page_urls import url_of
from moderation.templatetags.chat import ago, visible
from moderation.templatetags.message_rows import message_excerpt
from moderation.views.raid_page import AccountLine

register = template.Library()

SAMPLE_CHARACTERS = 160

_CHECKED = SafeString(" checked")
_ESTABLISHED = SafeString(" data-established")


@register.simple_tag(takes_context=True)
def account_rows(context: template.Context, lines: Iterable[AccountLine]) -> SafeString:
    """Render accounts as items of a list, each with a checkbox that selects its messages."""
    may_view = context["perms"]["chatstore"]["view_chatuser"]
    return join(
        _draw_line(line, message_excerpt(context, line.sample, context["channel"]), may_view_users=may_view)
        for line in lines
    )


def _draw_line(line: AccountLine, text: str, *, may_view_users: bool) -> SafeString:
    count = len(line.account.message_ids)
    return fill(
        '<li class="account-line">\n<label class="account-choice">\n'
        '<input type="checkbox" name="account" value="{}" data-messages="{}"{}{}{}>\n'
        '<span class="avatar s tone{}" aria-hidden="true">{}</span>\n'
        '<span class="account-who"><bdi class="author">{}</bdi>{}<span class="dotted quiet small">{}</span></span>\n'
        "</label>\n"
        '<span class="num small">{}</span>\n'
        '<p class="account-signs">\n{}<bdi class="clip quiet small">{}</bdi>\n</p>\n</li>\n',
        line.account.author_id,
        count,
        fill(' data-included="{}"', line.included) if line.included else "",
        _ESTABLISHED if line.account.is_established else "",
        _CHECKED if line.is_checked else "",
        line.writer.tone,
        line.writer.initials,
        line.writer.name,
        fill('\n<span class="tag">{}</span>', _("bot")) if line.writer.is_bot or line.writer.is_webhook else "",
        _describe_age(line),
        _draw_count(line, count, may_view_users=may_view_users),
        join(fill('<span class="tag plain">{}</span>\n', sign) for sign in line.signs),
        visible(shorten(text, characters=SAMPLE_CHARACTERS)) or _("a message without text"),
    )


def _describe_age(line: AccountLine) -> SafeString:
    age = fill_named(_("created %(ago)s"), ago=ago(line.created_at)) if line.created_at else _("age unknown")
    return dotted([*([fill("<bdi>{}</bdi>", visible(line.handle))] if line.handle else []), age])


def _draw_count(line: AccountLine, count: int, *, may_view_users: bool) -> SafeString | str:
    text = formats.format_count(count, "message")
    if not may_view_users or line.writer.is_webhook:
        return text
    return fill('<a href="{}" data-panel>{}</a>', url_of("user", line.account.author_id), text)
