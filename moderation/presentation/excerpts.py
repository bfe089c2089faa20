"""A message's text without Discord's markdown: for lists, quotes and the beginning of a long text.

Spoilers are covered, and users and channels are named where their names are known. A link with a label is shown as the
label and the host that it opens.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from django.utils.translation import gettext as _

from moderation.presentation import formats
from moderation.presentation.markup import Piece, host_of, parse_markup

COVERED = "▒▒▒▒"
MAX_CHARACTERS = 400
"""Characters of one line: more than a list shows."""

_NONE: Mapping[int, object] = MappingProxyType({})
_LINES = {"block", "quote", "heading", "subtext", "list", "numbered", "item"}
"""Pieces that stand on lines of their own."""


def unformatted(text: str, users: Mapping[int, object] = _NONE, channels: Mapping[int, object] = _NONE) -> str:
    """Return the beginning of a message's text in one line, without marks.

    users, channels: those with known names, by ID. Invisible characters are still in it.
    """
    return " ".join(plain_text(text, users, channels).split())[:MAX_CHARACTERS]


def plain_text(text: str, users: Mapping[int, object] = _NONE, channels: Mapping[int, object] = _NONE) -> str:
    """Return all of it with its line breaks."""
    # All of the text is looked at: a spoiler may be closed after any number of characters.
    drawn = _join(parse_markup(text), users, channels)
    return re.sub(r"\n{2,}", "\n", drawn).strip("\n")


def name_user(user_id: int, users: Mapping[int, object]) -> str:
    """Return a mention of a user: "@Victor 71", "@user 71"."""
    return f"@{users.get(user_id) or _('user %(id)s') % {'id': user_id}}"


def name_role(role_id: str) -> str:
    """Return a mention of a role; roles have no known names."""
    return f"@{_('role %(id)s') % {'id': role_id}}"


def _draw(piece: Piece, users: Mapping[int, object], channels: Mapping[int, object]) -> str:
    match piece.kind:
        case "spoiler":
            return COVERED
        case "masked":
            return f"{piece.text} ({host_of(piece.target)})"
        case "control":
            return piece.target
        case "user":
            return name_user(int(piece.target), users)
        case "role":
            return name_role(piece.target)
        case "channel":
            channel = channels.get(int(piece.target))
            return str(channel) if channel else f"#{piece.target}"
        case "time":
            return formats.format_datetime(dt.datetime.fromtimestamp(int(piece.target), tz=dt.UTC))
    inside = piece.text or _join(piece.parts, users, channels)
    return f"\n{inside}\n" if piece.kind in _LINES else inside


def _join(pieces: Iterable[Piece], users: Mapping[int, object], channels: Mapping[int, object]) -> str:
    return "".join(_draw(piece, users, channels) for piece in pieces)
