"""What the filters of the audit log name: an ID, a link, or the name of a channel or a chat user."""

from __future__ import annotations

from chatstore.domain.snowflakes import parse_snowflake
from chatstore.operations.rights import require
from moderation.domain.links import find_channel_link, find_message_link, find_purge_link, find_user_link
from moderation.operations.access.visibility import Actor, visible_channels, visible_purges
from moderation.operations.lookup.audit_log import VIEW_AUDIT
from moderation.operations.selection.parsing import find_author, find_channel
from moderation.operations.selection.summary import ListedPurge, describe_purges

OFFERED_PURGES = 20


def channel_id_of(user: Actor, typed: str) -> int:
    """Return the ID of a channel; one that is typed need not exist any more.

    Raises `Forbidden`, `BadInput`, and `AmbiguousName` for a name that several channels have.
    """
    require(user, VIEW_AUDIT)
    link = find_message_link(typed)
    number = link[0] if link is not None else find_channel_link(typed) or typed
    if _is_number(number):
        return parse_snowflake(number)
    return find_channel(typed, visible_channels(user, VIEW_AUDIT)).pk


def chat_user_id_of(user: Actor, typed: str) -> int:
    """Return the ID of a chat user; one that is typed need not be known. Raises the same."""
    require(user, VIEW_AUDIT)
    number = find_user_link(typed) or typed
    if _is_number(number):
        return parse_snowflake(number)
    require(user, "chatstore.view_chatuser")
    return find_author(typed)


def purge_id_of(typed: str) -> int:
    """Return the ID of a purge, from itself or from a link. Raises `BadInput`."""
    return parse_snowflake(find_purge_link(typed) or typed)


def newest_purges(user: Actor) -> list[ListedPurge]:
    """Return the newest purges that a user may see, to choose from. Raises `Forbidden`."""
    require(user, VIEW_AUDIT)
    return describe_purges(user, list(visible_purges(user).order_by("-id")[:OFFERED_PURGES]))


def purge_named(user: Actor, purge_id: int) -> ListedPurge | None:
    """Return a purge with its summary; None if the user may not see it, or there is none. Raises `Forbidden`."""
    require(user, VIEW_AUDIT)
    found = describe_purges(user, list(visible_purges(user).filter(pk=purge_id)))
    return found[0] if found else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()
