"""Links as users paste them: of messages, from this site or from the chat that an import came from, and of purges,
channels and chat users."""

from __future__ import annotations

import re

# /channels/<channel>/<message>, optionally with a guild id or "@me" in between. Ids only: bucket pages don't match.
_MESSAGE = re.compile(r"/channels/(?:(?:@me|-?[0-9]{1,20})/)?(-?[0-9]{1,20})/(-?[0-9]{1,20})/?(?:[?#]\S*)?")
_CHANNEL = re.compile(r"/channels/(-?[0-9]{1,20})/?(?:[?#]\S*)?$")
_USER = re.compile(r"/users/(-?[0-9]{1,20})/?(?:[?#]\S*)?$")
_MENTION = re.compile(r"<(?:@!?|#)(-?[0-9]{1,20})>")
_PURGE = re.compile(r"/purges/(-?[0-9]{1,20})/?(?:[?#]\S*)?$")


def find_message_link(text: str) -> tuple[str, str] | None:
    """Return (channel id, message id) as typed if the text ends with a message link, else None."""
    typed = text.strip()
    begin = typed.rfind("/channels/")
    found = _MESSAGE.fullmatch(typed, begin) if begin >= 0 else None
    return (found[1], found[2]) if found else None


def find_purge_link(text: str) -> str | None:
    """Return the id as typed if the text ends with a link of a purge, else None."""
    return _find_id(_PURGE, text)


def find_channel_link(text: str) -> str | None:
    """Return the id as typed if the text ends with a link of a channel, else None."""
    return _find_id(_CHANNEL, text)


def find_mention(text: str) -> str | None:
    """Return the id as typed if the text is a mention as chats store it, "<@80351110224678912>", else None."""
    found = _MENTION.fullmatch(text.strip())
    return found[1] if found else None


def find_user_link(text: str) -> str | None:
    """Return the id as typed if the text ends with a link of a chat user, else None."""
    return _find_id(_USER, text)


def _find_id(link: re.Pattern[str], text: str) -> str | None:
    found = link.search(text.strip())
    return found[1] if found else None
