"""The text of messages as pieces that a page can render safely.

Messages are untrusted: they are split into pieces of plain text with a kind, and the
template tag that renders them escapes each piece. This module creates no HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from chatstore.domain.controls import make_inert, name_control, show_controls, show_hidden

LONG_CHARACTERS = 1_200
LONG_LINES = 24
"""Longer messages are folded, so that a pasted log does not fill the page."""

_MAX_PIECES = 4_000
"""Marks after which the rest is plain text. Bounds the work that one message can cause."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text. kind: text, bold, italic, strike, code, block, quote, link, user, channel,
    emoji or control. target: the URL of a link, the id of a user or channel."""

    kind: str
    text: str
    target: str = ""


_MARKS = re.compile(
    r"```(?:[\w+-]{0,20}\n)?(?P<block>.+?)```"
    r"|`(?P<code>[^`\n]+)`"
    r"|\*\*(?P<bold>[^*\n]+)\*\*"
    r"|~~(?P<strike>[^~\n]+)~~"
    r"|(?<![\w*])\*(?P<italic>[^*\s][^*\n]*)\*(?![\w*])"
    r"|(?<![\w_])_(?P<under>[^_\s][^_\n]*)_(?![\w_])"
    r"|<@[!&]?(?P<user>\d{1,20})>"
    r"|<#(?P<channel>\d{1,20})>"
    r"|<a?:(?P<emoji>\w{1,40}):\d{1,20}>"
    r"|(?P<link>https?://[^\s<>\"'`\x00-\x20]{1,2000})"
    r"|^>[ ](?P<quote>[^\n]*)\n?"
    r"|(?P<control>[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]+)",
    re.DOTALL | re.MULTILINE,
)

_TRAILING = ".,;:!?)]}'\""


def is_long(text: str) -> bool:
    """Return whether a page folds the text."""
    return len(text) > LONG_CHARACTERS or text.count("\n") > LONG_LINES


def shorten(text: str, *, characters: int, lines: int = LONG_LINES) -> str:
    """Return the beginning of a text: at most that many lines and characters, cut after a word if one ends near."""
    short = "\n".join(text.split("\n")[:lines])[:characters]
    if len(short) < len(text) and " " in short[-40:]:
        short = short[: short.rindex(" ")]
    return short.rstrip()


def parse_markup(text: str) -> list[Piece]:
    """Return the pieces of a message, in order. All of the text is kept except the marks themselves."""
    pieces: list[Piece] = []
    end = 0
    for found in _MARKS.finditer(text):
        if len(pieces) >= _MAX_PIECES:
            break
        if found.start() > end:
            pieces.append(Piece("text", text[end : found.start()]))
        pieces.extend(_pieces_of(found))
        end = found.end()
    if end < len(text):
        pieces.append(Piece("text", show_controls(text[end:])))
    return pieces


def _pieces_of(found: re.Match[str]) -> Iterator[Piece]:
    kind = found.lastgroup or ""
    content = found[kind]
    if kind == "link":
        url = content.rstrip(_TRAILING)
        yield Piece("link", show_hidden(url), target=make_inert(url))
        if len(url) < len(content):
            yield Piece("text", content[len(url) :])
    elif kind in ("user", "channel"):
        yield Piece(kind, content, target=content)
    elif kind == "control":
        yield from (Piece("control", name_control(character)) for character in content[:20])
    elif kind == "emoji":
        yield Piece("emoji", f":{content}:")
    else:
        yield Piece("italic" if kind == "under" else kind, show_controls(content))
