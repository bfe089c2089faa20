"""The beginning of a message in one line, for lists: without marks of Discord's markdown, and with spoilers covered.

A link with a label is shown as the label and the host that it opens.
"""

from __future__ import annotations

import re

_SPOILER = re.compile(r"\|\|[^|]+\|\|")
_LINK = re.compile(r"\[([^\[\]]+)\]\(<?https?://([^/\s()<>]+)[^\s()<>]*>?\)")
_LINE_MARK = re.compile(r"^\s*(?:#{1,3}|-#|>{1,3}|[-*])\s+", re.MULTILINE)
_MARK = re.compile(r"(?<!\s)\*{1,3}|\*{1,3}(?!\s)|__|~~|`{1,3}")

COVERED = "▒▒▒▒"
MAX_CHARACTERS = 400
"""Characters that are looked at: more than a line shows."""


def unformatted(text: str) -> str:
    """Return the beginning of a message's text without marks and line breaks."""
    bare = _LINK.sub(r"\1 (\2)", _SPOILER.sub(COVERED, text[:MAX_CHARACTERS]))
    return " ".join(_MARK.sub("", _LINE_MARK.sub("", bare)).split())
