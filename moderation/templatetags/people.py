"""Template tags of people: the avatars of chat users and of staff, and a line that tells chat users apart."""

from __future__ import annotations

from django import template
from django.contrib.auth.models import AbstractUser
from django.utils import timezone
from django.utils.safestring import SafeString

from chatstore.models import ChatUser
from moderation.operations.access.visibility import name_of
from moderation.operations.lookup.chat_users import account_made_at
from moderation.presentation.avatars import initials_of, tone_of
from moderation.presentation.html import dotted, fill
from moderation.presentation.page_urls import url_of
from moderation.presentation.people import SEPARATOR, describe_account, name_unknown
from moderation.templatetags.chat import visible

register = template.Library()

register.filter("dotted", dotted)


@register.simple_tag
def avatar(person: ChatUser, size: str = "s") -> SafeString:
    """Render the avatar of a chat user: initials on their color."""
    return _draw(person.pk, str(person), size)


@register.simple_tag
def staff_avatar(account: AbstractUser) -> SafeString:
    """Render the avatar of a staff account in the same way."""
    return _draw(account.pk, name_of(account), "s")


def _draw(number: int, name: str, size: str) -> SafeString:
    pattern = '<span class="avatar {} tone{}" aria-hidden="true">{}</span>'
    return fill(pattern, size, tone_of(number), initials_of(name))


@register.simple_tag(takes_context=True)
def person_line(context: template.Context, person: ChatUser) -> SafeString:
    """Render a chat user: the avatar, the name, with a link where the viewer may see users, handle, account's age."""
    name = fill("<bdi>{}</bdi>", visible(person))
    return fill(
        '<span class="person-line">\n{}\n<span class="person">\n{}\n<bdi class="dotted quiet small">{}</bdi>\n'
        "</span>\n</span>",
        avatar(person),
        fill('<a class="author" href="{}">{}</a>', url_of("user", person.pk), name)
        if context["perms"]["chatstore"]["view_chatuser"]
        else fill('<span class="author">{}</span>', name),
        dotted(account_facts(person)),
    )


@register.filter
def or_id(name: object, user_id: int) -> str:
    """Return the name of a chat user; "user 71" if only the ID is known."""
    return str(name) if name else name_unknown(user_id)


@register.filter
def account_facts(person: ChatUser) -> tuple[str, ...]:
    """Return the handle of a chat user and the day on which the account was created."""
    made_at = account_made_at(person.pk, now=timezone.now())
    return describe_account(person.distinct_handle, is_bot=person.is_bot, made_at=made_at)


def account_title(person: ChatUser) -> str:
    """Return the title of a name: the account's facts, and the ID."""
    return SEPARATOR.join((*account_facts(person), str(person.pk)))
