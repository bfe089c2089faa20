"""The text of messages as pieces that a page can render safely: Discord's markdown.

Messages are untrusted: they are split into pieces with a kind, and the template tag that renders them escapes each.
This module creates no HTML. Its time is linear: no expression can match one character in two ways, closing marks are
listed once for each frame, and a frame contains no other of its kind, so that frames are at most six deep.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from chatstore.domain.controls import make_inert, name_control, show_controls, show_hidden

LONG_CHARACTERS = 1_200
LONG_LINES = 24
"""Longer messages are folded, so that a pasted log does not fill the page."""

_MAX_PIECES = 4_000
"""Marks after which the rest is plain text. Bounds the work that one message can cause."""

_FIRST_SECOND, _LAST_SECOND = -62_135_596_800 + 2 * 86_400, 253_402_300_799 - 2 * 86_400
"""Times that have a date in every time zone, in seconds since 1970: the years 1 to 9999, less two days at each end."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text, or a frame around other pieces.

    kind: text, code, block, emoji, everyone; control (target: the character, which is never shown); link and masked
    (target: the URL); user, role and channel (target: the ID); time (target: seconds since 1970). Frames: bold, italic,
    underline, strike, spoiler, quote, heading (target: its level), subtext, list, numbered (target: the first number),
    item (target: its level).
    """

    kind: str
    text: str = ""
    target: str = ""
    parts: tuple[Piece, ...] = ()


_CONTROLS = r"\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
_MARKED = re.compile(
    rf"[\\*_~`|<[{_CONTROLS}]|https?://|@(?:everyone|here)|^(?:>|#{{1,3}} |-# |[ ]*(?:-|\d+\.) )",
    re.MULTILINE,
)
"""What a text without any marks does not contain; most messages are such texts."""

_MARKS = re.compile(
    r"\\(?P<escaped>[\\`*_~|<>\[\]()#@:.!-])"
    r"|(?P<code>``?)"
    r"|(?P<frame>\*\*|__|~~|\|\||\*(?=\S)|(?<!\w)_(?=\S))"
    r"|<@!?(?P<user>\d{1,20})>"
    r"|<@&(?P<role>\d{1,20})>"
    r"|<#(?P<channel>\d{1,20})>"
    r"|<a?:(?P<emoji>\w{1,40}):\d{1,20}>"
    r"|<t:(?P<time>-?\d{1,12})(?::[tTdDfFR])?>"
    r"|\[(?P<label>[^\[\]\n]{1,500})\]\(<?(?P<masked>https?://[^\s<>()\"'`\\]{1,2000})>?\)"
    r"|(?P<link>https?://[^\s<>\"'`\x00-\x20]{1,2000})"
    r"|(?P<everyone>@(?:everyone|here)\b)"
    rf"|(?P<control>[{_CONTROLS}]+)"
)

_FRAMES = {
    "**": ("bold", re.compile(r"\*\*(?!\*)")),
    "__": ("underline", re.compile(r"__(?!_)")),
    "~~": ("strike", re.compile(r"~~(?!~)")),
    "||": ("spoiler", re.compile(r"\|\|")),
    "*": ("italic", re.compile(r"(?<![\s*])\*(?!\*)")),
    "_": ("italic", re.compile(r"(?<=[^\s_])_(?!\w)")),
}
"""Kind of the frame that a mark opens, and the mark that closes it."""

_HEADING = re.compile(r"(#{1,3}) +(?=\S)")
_SUBTEXT = re.compile(r"-# +(?=\S)")
_ITEM = re.compile(r"([ ]{0,12})(?:[-*]|(\d{1,9})\.) +(?=\S)")
_LANGUAGE = re.compile(r"[\w+-]{0,20}\n")
_MAX_LEVEL = 3

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


def parse_markup(text: str) -> Sequence[Piece]:
    """Return the pieces of a message, in order. All of the text is kept except the marks themselves."""
    if not _MARKED.search(text):
        return (Piece("text", text),)
    return tuple(_Parser().read(text))


def host_of(url: str) -> str:
    """Return the host that a browser would open, or "" if it cannot be told for certain."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


class _Parser:
    """Parser of one message. left: pieces until the rest is plain text."""

    def __init__(self) -> None:
        self.left = _MAX_PIECES

    def read(self, text: str) -> Iterator[Piece]:
        """Yield code blocks, and the pieces of the text between them."""
        begin = position = 0
        while (opening := text.find("```", position)) >= 0 and self.left > 0:
            closing = text.find("```", opening + 3)
            if closing < 0:
                break
            position = closing
            if not text[opening + 3 : closing].strip():
                continue
            yield from self._read_lines(text[begin:opening].removesuffix("\n"))
            yield self._read_block(text[opening + 3 : closing])
            begin = position = closing + 3
            if text.startswith("\n", begin):
                begin += 1
        yield from self._read_lines(text[begin:])

    def _read_block(self, code: str) -> Piece:
        self.left -= 1
        language = _LANGUAGE.match(code)
        return Piece("block", show_controls(code[language.end() :] if language else code))

    def _read_lines(self, text: str, *, in_quote: bool = False) -> Iterator[Piece]:
        """Yield quotes, headings and lists, and the pieces of the paragraphs between them."""
        lines = text.split("\n")
        paragraph: list[str] = []
        at = 0
        while at < len(lines):
            count, piece = self._read_frame_of_lines(lines, at, in_quote=in_quote) if self.left > 0 else (0, None)
            if piece is None:
                paragraph.append(lines[at])
                at += 1
                continue
            yield from self._read_inline("\n".join(paragraph))
            paragraph.clear()
            yield piece
            at += count
        yield from self._read_inline("\n".join(paragraph))

    def _read_frame_of_lines(self, lines: Sequence[str], at: int, *, in_quote: bool) -> tuple[int, Piece | None]:
        """Return how many lines a quote, heading or list takes that begins at a line, and itself; None for others."""
        line = lines[at]
        if line.startswith(">") and not in_quote:
            return self._read_quote(lines, at)
        if found := _HEADING.match(line):
            return 1, self._frame("heading", line[found.end() :], target=str(len(found[1])))
        if found := _SUBTEXT.match(line):
            return 1, self._frame("subtext", line[found.end() :])
        if found := _ITEM.match(line):
            return self._read_list(lines, at, number=found[2])
        return 0, None

    def _read_quote(self, lines: Sequence[str], at: int) -> tuple[int, Piece | None]:
        if lines[at].startswith(">>> "):
            quoted = [lines[at][4:], *lines[at + 1 :]]
        else:
            end = at
            while end < len(lines) and (lines[end].startswith("> ") or lines[end] == ">"):
                end += 1
            quoted = [line[2:] for line in lines[at:end]]
        if not quoted:
            return 0, None
        self.left -= 1
        return len(quoted), Piece("quote", parts=tuple(self._read_lines("\n".join(quoted), in_quote=True)))

    def _read_list(self, lines: Sequence[str], at: int, *, number: str | None) -> tuple[int, Piece]:
        items = []
        for line in lines[at:]:
            found = _ITEM.match(line)
            if not found or bool(found[2]) != bool(number) or self.left <= 0:
                break
            level = min(len(found[1]) // 2, _MAX_LEVEL)
            items.append(self._frame("item", line[found.end() :], target=str(level)))
        self.left -= 1
        return len(items), Piece("numbered" if number else "list", target=number or "", parts=tuple(items))

    def _frame(self, kind: str, text: str, *, target: str = "", within: frozenset[str] = frozenset()) -> Piece:
        self.left -= 1
        return Piece(kind, target=target, parts=tuple(self._read_inline(text, within=within)))

    def _read_inline(self, text: str, *, within: frozenset[str] = frozenset()) -> Iterator[Piece]:
        """Yield the pieces of a text. within: kinds of the frames around it."""
        closings: dict[str, list[int]] = {}
        begin = position = 0
        while self.left > 0 and (found := _MARKS.search(text, position)):
            if found.lastgroup == "frame":
                pieces, end = self._read_frame(text, found, closings, within)
            elif found.lastgroup == "code":
                pieces, end = _read_code(text, found, closings)
            else:
                pieces, end = list(_pieces_of(found)), found.end()
            if pieces:
                self.left -= len(pieces)
                if found.start() > begin:
                    yield Piece("text", text[begin : found.start()])
                yield from pieces
                begin = end
            position = end
        if begin < len(text):
            yield Piece("text", show_controls(text[begin:]))

    def _read_frame(
        self, text: str, found: re.Match[str], closings: dict[str, list[int]], within: frozenset[str]
    ) -> tuple[list[Piece], int]:
        """Return the frame that a mark opens, and its end; no piece if nothing closes it."""
        mark = found["frame"]
        kind, closing = _FRAMES[mark]
        if kind in within:
            return [], found.end()
        if mark not in closings:
            closings[mark] = [each.start() for each in closing.finditer(text)]
        # At least one character is between the marks.
        at = bisect_left(closings[mark], found.end() + 1)
        if at == len(closings[mark]):
            return [], found.end()
        end = closings[mark][at]
        return [self._frame(kind, text[found.end() : end], within=within | {kind})], end + len(mark)


def _read_code(text: str, found: re.Match[str], closings: dict[str, list[int]]) -> tuple[list[Piece], int]:
    """Return the code that backticks open, and its end; no piece if nothing closes it."""
    mark = found["code"]
    if mark not in closings:
        closings[mark] = [each.start() for each in re.finditer(rf"(?<!`){mark}(?!`)", text)]
    at = bisect_left(closings[mark], found.end() + 1)
    if at == len(closings[mark]):
        return [], found.end()
    end = closings[mark][at]
    return [Piece("code", show_controls(text[found.end() : end]))], end + len(mark)


def _pieces_of(found: re.Match[str]) -> Iterator[Piece]:
    """Yield the pieces of a mark that nothing has to close; none if it is plain text."""
    kind = found.lastgroup or ""
    content = found[kind]
    if kind == "link":
        url = content.rstrip(_TRAILING)
        yield Piece("link", show_hidden(url), target=make_inert(url))
        if len(url) < len(content):
            yield Piece("text", content[len(url) :])
    elif kind == "masked":
        if host_of(content):
            yield Piece("masked", show_hidden(found["label"]), target=make_inert(content))
    elif kind == "time":
        if _FIRST_SECOND <= int(content) <= _LAST_SECOND:
            yield Piece("time", target=content)
    elif kind in ("user", "role", "channel"):
        yield Piece(kind, content, target=content)
    elif kind == "control":
        yield from (Piece("control", name_control(character), target=character) for character in content[:20])
    elif kind == "emoji":
        yield Piece("emoji", f":{content}:")
    else:
        yield Piece("text" if kind == "escaped" else kind, content)
