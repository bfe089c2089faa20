"""Message links as users paste them: from this site, or from the chat that an import came from."""

from __future__ import annotations

import re

# /channels/<channel>/<message>, optionally with a guild id or "@me" in between. Ids only: bucket pages don't match.
_MESSAGE = re.compile(r"/channels/(?:(?:@me|-?[0-9]{1,20})/)?(-?[0-9]{1,20})/(-?[0-9]{1,20})/?(?:[?#]\S*)?")


def find_message_link(text: str) -> tuple[str, str] | None:
    """Return (channel id, message id) as typed if the text ends with a message link, else None."""
    typed = text.strip()
    begin = typed.rfind("/channels/")
    found = _MESSAGE.fullmatch(typed, begin) if begin >= 0 else None
    return (found[1], found[2]) if found else None
