"""Links to messages, as people paste them: of this site, or of the chat that an import came from."""

from __future__ import annotations

import re

# /channels/<channel>/<message>, or with a guild or "@me" before; nothing but ids, or a bucket's address would be one.
_MESSAGE = re.compile(r"/channels/(?:(?:@me|-?[0-9]{1,20})/)?(-?[0-9]{1,20})/(-?[0-9]{1,20})/?(?:[?#]\S*)?")


def find_message_link(text: str) -> tuple[str, str] | None:
    """(channel's id, message's id), as written, where a text ends with a link to a message; else None."""
    words = text.strip()
    begin = words.rfind("/channels/")
    found = _MESSAGE.fullmatch(words, begin) if begin >= 0 else None
    return (found[1], found[2]) if found else None
