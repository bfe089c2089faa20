"""Comparison of nearly identical texts, as the accounts of a raid post them."""

from __future__ import annotations

import re
import unicodedata

MAX_TEXT_CHARACTERS = 4_000
"""Only the beginning of a text is compared. Discord allows no more."""

_EMOJI = re.compile(r"<a?:\w{1,64}:\d{1,20}>")
_NO_LETTERS = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")
_REPEATED = re.compile(r"(.)\1+", re.DOTALL)


def normalize_text(text: str) -> str:
    """Return the text without what varies between copies of a message; "" only for an empty text.

    Case, accents, styles of letters, punctuation, whitespace, invisible characters, emoji, numbers, mentions and
    repetitions are ignored. A text without letters and digits is compared by its symbols. Takes linear time for any
    text.
    """
    beginning = text[:MAX_TEXT_CHARACTERS]
    plain = _EMOJI.sub("", beginning)
    if not plain.isascii():
        # Long runs of combining marks would take quadratic time to normalize.
        plain = "".join(char for char in plain if not unicodedata.combining(char))
        plain = unicodedata.normalize("NFKD", plain)[:MAX_TEXT_CHARACTERS]
    letters = _DIGITS.sub("0", _NO_LETTERS.sub("", plain.casefold()))
    return _REPEATED.sub(r"\1", letters or "".join(beginning.split()) or beginning[:1])
