"""A message's text without Discord's markdown: for lists, quotes and the beginning of a long text.

Spoilers are covered, and users, channels and roles are named where their names are known. A link with a label is shown
as the label and the host that it opens.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from moderation.presentation import formats
from moderation.presentation.markup import Piece, host_of, parse_markup

COVERED = "▒▒▒▒"
MAX_CHARACTERS = 400
"""Characters of one line: more than a list shows."""

_LINES = {"block", "quote", "heading", "subtext", "list", "numbered", "item"}
"""Pieces that stand on lines of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Users, channels and roles with known names, by ID: a name, or what is one as a string.

    A user may have a `distinct_name`, which is used instead.
    """

    users: Mapping[int, Any] = field(default_factory=dict)
    channels: Mapping[int, Any] = field(default_factory=dict)
    roles: Mapping[int, Any] = field(default_factory=dict)


_NOTHING = Known()


def unformatted(text: str, known: Known = _NOTHING) -> str:
    """Return the beginning of a message's text in one line, without marks.

    known: what it may mention. Invisible characters are still in it.
    """
    return " ".join(plain_text(text, known).split())[:MAX_CHARACTERS]


def plain_text(text: str, known: Known = _NOTHING) -> str:
    """Return all of it with its line breaks."""
    # All of the text is looked at: a spoiler may be closed after any number of characters.
    drawn = _join(parse_markup(text), known)
    return re.sub(r"\n{2,}", "\n", drawn).strip("\n")


def name_user(user_id: int, users: Mapping[int, object]) -> str:
    """Return a mention of a user: "@Victor", "@Victor (@victor.deals)" if others have the name, "@user 71"."""
    user = users.get(user_id)
    return f"@{getattr(user, 'distinct_name', user) or _('user %(id)s') % {'id': user_id}}"


def name_role(role_id: int, roles: Mapping[int, object]) -> str:
    """Return a mention of a role: "@Crew", "@role 71"."""
    return f"@{roles.get(role_id) or _('role %(id)s') % {'id': role_id}}"


def _draw(piece: Piece, known: Known) -> str:
    match piece.kind:
        case "spoiler":
            return COVERED
        case "masked":
            return f"{piece.text} ({host_of(piece.target)})"
        case "control":
            return piece.target
        case "user":
            return name_user(int(piece.target), known.users)
        case "role":
            return name_role(int(piece.target), known.roles)
        case "channel":
            channel = known.channels.get(int(piece.target))
            return str(channel) if channel else f"#{piece.target}"
        case "time":
            return formats.format_datetime(dt.datetime.fromtimestamp(int(piece.target), tz=dt.UTC))
    inside = piece.text or _join(piece.parts, known)
    return f"\n{inside}\n" if piece.kind in _LINES else inside


def _join(pieces: Iterable[Piece], known: Known) -> str:
    return "".join(_draw(piece, known) for piece in pieces)
