"""Escape invisible and control characters in text that people wrote.

Such text must have no effect on a page, a mail or a log, and two names that look alike must show how they differ.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote

_SHORT_NAMES = {
    "\u202a": "LRE",
    "\u202b": "RLE",
    "\u202c": "PDF",
    "\u202d": "LRO",
    "\u202e": "RLO",
    "\u2066": "LRI",
    "\u2067": "RLI",
    "\u2068": "FSI",
    "\u2069": "PDI",
    "\u200e": "LRM",
    "\u200f": "RLM",
    "\u061c": "ALM",
    "\x00": "NUL",
}
_HIDDEN_NAMES = {
    "\u00ad": "SHY",
    "\u034f": "CGJ",
    "\u180e": "MVS",
    "\u200b": "ZWSP",
    "\u200c": "ZWNJ",
    "\u200d": "ZWJ",
    "\u2060": "WJ",
    "\ufeff": "BOM",
    "\ufe0e": "VS15",
    "\ufe0f": "VS16",
}

# Unicode's Default_Ignorable_Code_Point without the format characters, plus the Braille blank.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
# Format characters that are visible: signs placed above or before a number.
_SHAPED = re.compile("[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd]")

# Hidden characters used as intended, where their effect is visible.
_VISIBLE_USES = re.compile(
    # The flags of England, Scotland and Wales: a black flag followed by the region's code in tag characters.
    "(?<=\U0001f3f4)\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"
    # A keycap, preceded by its digit or sign.
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"
)
_TAGS = re.compile("[\U000e0030-\U000e0039\U000e0041-\U000e005a\U000e0061-\U000e007a]+")
_SPELT = re.compile(
    rf"\[(?=(?:{'|'.join((*_SHORT_NAMES.values(), *_HIDDEN_NAMES.values(), 'SPACE'))}|U\+[0-9A-F]{{4,6}}|TAG:[^\]]*)"
    r"(?:×\d+)?\])"
)
"""The opening bracket of literal text in a name that looks like an escaped hidden character."""

_VIRAMA = 9
"""Combining class after which a joiner or a non-joiner changes a letter (RFC 5892, appendix A)."""
MAX_NAME, MAX_REMEMBERED = 100, 4096
"""Characters of a text, and number of texts, whose result is remembered: pages repeat names, in most languages not in
ASCII, and look at each of their characters."""
_NEVER_JOINED = frozenset("آأؤإاةدذرزوٱڈڑژءے")
"""Arabic letters that never join the next one: a non-joiner after them has no effect."""


def name_control(character: str) -> str:
    """Return a short name for a character that has no visible shape."""
    return _SHORT_NAMES.get(character) or _HIDDEN_NAMES.get(character) or f"U+{ord(character):04X}"


def show_controls(text: str) -> str:
    """Return the text with bidi marks and control characters escaped, so that they have no effect.

    Line breaks and tabs are kept. Meant for message content; use `show_hidden` for names.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"[{name_control(character)}]" if _is_active(character) else character for character in text)


def show_hidden(text: str) -> str:
    """Return the text with every control and invisible character escaped: for names, titles and URLs.

    Two names that differ look different, except for letters that are drawn alike. Joiners within emoji, or within
    scripts that need them, are kept where their effect is visible.
    """
    if text.isascii() and text.isprintable() and "[" not in text and text[:1] != " ":
        return text
    return _remember_shown(text) if len(text) <= MAX_NAME else _show_hidden(text)


def _show_hidden(text: str) -> str:
    if text and text.isspace():
        return _spell(text)
    kept = {at for found in _VISIBLE_USES.finditer(text) for at in range(found.start(), found.end())}
    runs = itertools.groupby(range(len(text)), key=lambda at: at not in kept and _must_be_spelt(text, at))
    texts = ((hidden, "".join(text[at] for at in run)) for hidden, run in runs)
    return "".join(_spell(run) if hidden else _SPELT.sub("[U+005B]", run) for hidden, run in texts)


_remember_shown = lru_cache(maxsize=MAX_REMEMBERED)(_show_hidden)


def show_on_one_line(text: str) -> str:
    """Return the result of `show_hidden` on a single line: spaces replace line breaks and tabs."""
    return show_hidden(" ".join(text.split()))


def make_inert(url: str) -> str:
    """Percent-encode every such character of a URL: it leads to the same place and has no other effect."""
    if url.isascii() and url.isprintable():
        return url
    return "".join(quote(each, errors="replace") if _is_active(each) or _is_hidden(each) else each for each in url)


def _is_active(character: str) -> bool:
    if character in "\n\t":
        return False
    # A lone surrogate cannot be encoded and would break the page.
    return character in _SHORT_NAMES or unicodedata.category(character) in ("Cc", "Cs")


def _is_hidden(character: str) -> bool:
    if _BLANK.match(character):
        return True
    return unicodedata.category(character) in ("Cf", "Zl", "Zp") and not _SHAPED.match(character)


def _must_be_spelt(text: str, at: int) -> bool:
    character = text[at]
    if _is_active(character):
        return True
    return _is_hidden(character) and not _is_joining(text, at)


def _is_joining(text: str, at: int) -> bool:
    """Return whether a joiner, a non-joiner or a variation selector has a visible effect between its neighbours."""
    character, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if not before:
        return False
    if character in "\ufe0e\ufe0f":
        return _is_symbol(before)
    if character in "\u200c\u200d" and unicodedata.combining(before) == _VIRAMA:
        return True
    if character == "\u200c":
        return before not in _NEVER_JOINED and _is_arabic(before) and _is_arabic(after)
    # A skin tone or a variation selector may come between an emoji and its joiner.
    is_emoji = _is_symbol(before) or before == "\ufe0f" or unicodedata.category(before) == "Sk"
    return character == "\u200d" and is_emoji and _is_symbol(after)


def _is_arabic(character: str) -> bool:
    return character != "" and unicodedata.name(character, "").startswith("ARABIC LETTER")


def _is_symbol(character: str) -> bool:
    """Return whether the character may be an emoji; Unicode classifies arrows as mathematical symbols."""
    if not character:
        return False
    category = unicodedata.category(character)
    return category == "So" or (category == "Sm" and character >= "\u2190")


def _spell(run: str) -> str:
    """Name each character: tag characters by the letters that they encode, repetitions once with their count."""
    return "".join(_spell_piece(piece) for piece in _pieces_of(run))


def _pieces_of(run: str) -> Iterator[str]:
    end = 0
    for tags in _TAGS.finditer(run):
        yield from _repetitions(run[end : tags.start()])
        yield tags[0]
        end = tags.end()
    yield from _repetitions(run[end:])


def _repetitions(run: str) -> Iterator[str]:
    for _, group in itertools.groupby(run):
        yield "".join(group)


def _spell_piece(piece: str) -> str:
    if _TAGS.match(piece):
        return f"[TAG:{''.join(chr(ord(each) - 0xE0000) for each in piece)}]"
    name = "SPACE" if piece[0] == " " else name_control(piece[0])
    return f"[{name}]" if len(piece) == 1 else f"[{name}×{len(piece)}]"
