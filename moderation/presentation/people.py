"""Chat users in one line, to tell apart those who share a name."""

from __future__ import annotations

import datetime as dt

from django.utils.translation import gettext as _

from chatstore.domain.controls import show_hidden
from moderation.presentation.formats import format_datetime, format_short_day, keep_together

SEPARATOR = " · "
"""Between facts where they are one text, not elements."""


def describe_account(
    handle: str, *, is_bot: bool, made_at: dt.datetime | None, to_the_minute: bool = False
) -> tuple[str, ...]:
    """Return a handle and the creation of the account: "@victor.deals", "bot", "account created 11 Mar 2024".

    handle: a user's `distinct_handle`. made_at: None if it is not known. No line breaks within a fact.
    """
    facts = (show_hidden(handle), *([_("bot")] if is_bot else []))
    return facts if made_at is None else (*facts, describe_age(made_at, to_the_minute=to_the_minute))


def name_unknown(user_id: int) -> str:
    """Return how a chat user is named of whom only the ID is known: "user 71"."""
    return _("user %(id)s") % {"id": user_id}


def describe_age(made_at: dt.datetime, *, to_the_minute: bool = False) -> str:
    """Return the creation of an account: "account created 11 Mar 2024"."""
    day = format_datetime(made_at) if to_the_minute else format_short_day(made_at)
    return _("account created %(day)s") % {"day": keep_together(day)}
