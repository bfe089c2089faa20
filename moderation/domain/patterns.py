"""Search texts as RE2 expressions. RE2 runs in time linear in the text, so no pattern can hang."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

import re2

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy

MAX_PATTERN_CHARACTERS = 500
"""Maximum length of a search text or expression."""

_TERM = re.compile(r'"([^"]*)"|(\S+)')

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
"""Scripts that put no space between words. Here a word may be next to any letter."""

_UNLIKE = ("a", "7", "!", "あ")
"""Texts with nothing in common. An expression that matches all of them (such as `.`) selects nothing in particular."""

_EDGE = rf"[^\p{{L}}\p{{N}}\p{{M}}]|[{_UNSPACED}]"


def _options() -> Any:
    options = re2.Options()
    options.case_sensitive = False
    # The moderator sees and corrects an invalid expression; it does not belong in the log.
    options.log_errors = False
    return options


@lru_cache(maxsize=256)
def compile_pattern(expression: str) -> Any:
    """Compile the expression, case-insensitive unless it contains `(?-i)`.

    Raises `BadInput` if it is invalid or would match every message.
    """
    check_text(expression)
    try:
        compiled = re2.compile(expression, _options())
    except re2.error as error:
        message = error.args[0]
        text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
        raise BadInput(
            _("The regular expression is not valid: %(error)s. Correct it and try again.", error=text)
        ) from None
    if compiled.search("") is not None or all(compiled.search(char) is not None for char in _UNLIKE):
        raise BadInput(_("The regular expression matches every message. Make it more specific."))
    return compiled


@lru_cache(maxsize=256)
def compile_words(text: str) -> tuple[Any, ...]:
    """Compile an expression for each word and each "quoted phrase" of the text.

    Words match as a whole: "ass" does not match "class". Typed in styled letters they match plain ones too; styled
    ones of a message are plain in its `plain_letters`. Raises `BadInput` if there is no word.
    """
    return tuple(re2.compile(_whole(term), _options()) for term in _terms_of(text))


@lru_cache(maxsize=256)
def compile_any_word(text: str) -> Any:
    """Compile an expression that finds any word or "quoted phrase" of the text; see `compile_words`."""
    return re2.compile("|".join(_whole(term) for term in _terms_of(text)), _options())


def plain_letters(text: str) -> str:
    """Return the text with full-width and styled letters as plain ones: "ＦＲＥＥ" and "𝐅𝐑𝐄𝐄" are "FREE" (NFKC)."""
    return unicodedata.normalize("NFKC", text)


def single_phrase(text: str) -> str:
    """Return the "quoted phrase" if the text is nothing else, or ""."""
    terms = _terms_of(text)
    return terms[0] if len(terms) == 1 and len(terms[0].split()) > 1 else ""


def _terms_of(text: str) -> list[str]:
    check_text(text)
    terms = [" ".join((phrase or word).split()) for phrase, word in _TERM.findall(text)]
    terms = [term for term in terms if any(char.isalnum() or not char.isascii() for char in term)]
    if not terms:
        raise BadInput(_("Enter at least one word to search for."))
    return terms


def _whole(term: str) -> str:
    return "|".join(_whole_word(spelled) for spelled in dict.fromkeys((term, plain_letters(term))))


def _whole_word(term: str) -> str:
    body = r"\s+".join(re2.escape(word) for word in term.split())
    before = rf"(?:^|{_EDGE})" if _wants_edge(term[0]) else ""
    after = rf"(?:$|{_EDGE})" if _wants_edge(term[-1]) else ""
    return f"{before}{body}{after}"


_SPACED_LETTER = re2.compile(r"^(?:[\p{L}\p{N}\p{M}])$")
_UNSPACED_LETTER = re2.compile(rf"^[{_UNSPACED}]$")


def _wants_edge(char: str) -> bool:
    return _SPACED_LETTER.search(char) is not None and _UNSPACED_LETTER.search(char) is None


def check_text(text: str, most: int = MAX_PATTERN_CHARACTERS) -> None:
    """Raise `BadInput` for a text that is empty, too long, or contains what no message can contain."""
    if not text.strip():
        raise BadInput(_("Enter a text to search for."))
    if len(text) > most:
        raise BadInput(
            ngettext_lazy(
                "The search text is too long. Use at most %(count)s character.",
                "The search text is too long. Use at most %(count)s characters.",
                most,
            )
        )
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise BadInput(_("The search text contains characters that no message can contain. Remove them."))
