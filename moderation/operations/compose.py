"""From what a moderator typed or ticked to a selection."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.db.models import Q

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.models import ChatUser
from moderation.domain.moments import id_from, parse_moment
from moderation.domain.selection import Selection

AUTHORS_AT_MOST = 20


def select_ticked(channel_id: int, message_ids: Sequence[str]) -> Selection:
    """The ticked messages of a channel. Raises `BadInput` when there are none or one is no id."""
    ids = sorted({parse_snowflake(text) for text in message_ids})
    if not ids:
        raise BadInput("No message is ticked. Tick the ones that should go.")
    return Selection(channel_id=channel_id, message_ids=tuple(ids))


def select_described(
    channel_id: int,
    *,
    authors: str,
    after: str,
    before: str,
    everything: bool,
    now: dt.datetime,
) -> Selection:
    """What authors (names or ids, parted by commas) and dates describe; after is inclusive."""
    return Selection(
        channel_id=channel_id,
        author_ids=tuple(find_author(name) for name in _split_names(authors)),
        after_id=id_from(parse_moment(after, now=now)) if after.strip() else None,
        before_id=id_from(parse_moment(before, now=now)) if before.strip() else None,
        everything=everything,
    )


def find_author(name: str) -> int:
    """The one chat user an id or a name means. Raises `BadInput` when it is none or several.

    An id comes first, and need not be known: an author may be missing from the chat's own list.
    """
    number = parse_snowflake(name) if name.isascii() and name.lstrip("-").isdigit() else None
    if number is not None and ChatUser.objects.filter(pk=number).exists():
        return number
    bare = name.removeprefix("@")
    found = list(ChatUser.objects.filter(Q(name__iexact=bare) | Q(display_name__iexact=bare))[:4])
    if len(found) > 1:
        ids = ", ".join(str(user.pk) for user in found[:3])
        raise BadInput(f"Several users are called “{name[:60]}”; give an id instead: {ids} …")
    if found:
        return found[0].pk
    if number is None:
        raise BadInput(f"Nobody here is called “{name[:60]}”. Give the exact name, or the user's id.")
    return number


def _split_names(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if len(names) > AUTHORS_AT_MOST:
        raise BadInput(f"At most {AUTHORS_AT_MOST} authors at a time.")
    if "\x00" in text:
        raise BadInput("A name cannot hold a NUL character.")
    return names
