"""Characters without a shape of their own, spelt out: what people write must not act on a page, a mail or a log."""

from __future__ import annotations

import unicodedata

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


def name_control(character: str) -> str:
    """A short name for a character that has no shape of its own."""
    return _SHORT_NAMES.get(character) or f"U+{ord(character):04X}"


def show_controls(text: str) -> str:
    """The text with bidi marks and control characters spelt out, so that they act on nothing.

    Line breaks and tabs stay. Also for names, which are hostile too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def show_in_a_line(text: str) -> str:
    """The same in a single line: blanks instead of line breaks and tabs."""
    return show_controls(" ".join(text.split()))


def _shown(character: str) -> str:
    if character in "\n\t":
        return character
    # A lone surrogate has no encoding: writing it would fail.
    is_control = unicodedata.category(character) in {"Cc", "Cs"} or character in _SHORT_NAMES
    return f"[{name_control(character)}]" if is_control else character
