"""Template tags of chat users: their avatar, and a line that tells apart those who share a name."""

from __future__ import annotations

from django import template
from django.utils import timezone
from django.utils.safestring import SafeString

from chatstore.models import ChatUser
from moderation.operations.lookup.chat_users import account_made_at
from moderation.presentation.avatars import initials_of, tone_of
from moderation.presentation.html import fill
from moderation.presentation.people import describe_account

register = template.Library()


@register.simple_tag
def avatar(person: ChatUser, size: str = "s") -> SafeString:
    """Render the avatar of a chat user: initials on their color."""
    return fill(
        '<span class="avatar {} tone{}" aria-hidden="true">{}</span>',
        size,
        tone_of(person.pk),
        initials_of(str(person)),
    )


@register.filter
def account_note(person: ChatUser) -> str:
    """Return the handle of a chat user and the day on which the account was created."""
    made_at = account_made_at(person.pk, now=timezone.now())
    return describe_account(person.name, is_bot=person.is_bot, made_at=made_at)
