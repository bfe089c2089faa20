"""Texts to look for, as expressions of RE2: its time grows with the text alone, so no pattern can hang."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

from chatstore.domain.errors import BadInput

TEXT_AT_MOST = 500
"""Characters of one text or expression that is looked for."""

_TERM = re.compile(r'"([^"]*)"|(\S+)')

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
"""Scripts that put no space between words: there a word may stand beside any letter."""

_UNLIKE = ("a", "7", "!", "あ")
"""Texts with nothing in common: what matches each of them, as `.` does, asks for nothing."""

_EDGE = rf"[^\p{{L}}\p{{N}}\p{{M}}]|[{_UNSPACED}]"


def _options() -> Any:
    options = re2.Options()
    options.case_sensitive = False
    # A wrong expression is the moderator's to mend, and no line for the log.
    options.log_errors = False
    return options


@lru_cache(maxsize=256)
def compile_pattern(expression: str) -> Any:
    """The expression, compiled; capitals are as good as small letters, unless it says `(?-i)`.

    Raises `BadInput` when it is none, or when it would match every message there is.
    """
    _check_text(expression)
    try:
        compiled = re2.compile(expression, _options())
    except re2.error as error:
        said = error.args[0]
        words = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise BadInput(f"The expression cannot be used: {words}.") from None
    if compiled.search("") is not None or all(compiled.search(char) is not None for char in _UNLIKE):
        raise BadInput("The expression matches every message. Say what must be in one.")
    return compiled


@lru_cache(maxsize=256)
def compile_words(text: str) -> tuple[Any, ...]:
    """An expression for each word and each "quoted phrase" of the text.

    A word is found whole: "ass" is not in "class". Raises `BadInput` when there is no word.
    """
    _check_text(text)
    terms = [" ".join((phrase or word).split()) for phrase, word in _TERM.findall(text)]
    terms = [term for term in terms if any(char.isalnum() or not char.isascii() for char in term)]
    if not terms:
        raise BadInput("Give at least one word to look for.")
    return tuple(re2.compile(_whole(term), _options()) for term in terms)


def _whole(term: str) -> str:
    body = r"\s+".join(re2.escape(word) for word in term.split())
    before = rf"(?:^|{_EDGE})" if _wants_edge(term[0]) else ""
    after = rf"(?:$|{_EDGE})" if _wants_edge(term[-1]) else ""
    return f"{before}{body}{after}"


_SPACED_LETTER = re2.compile(r"^(?:[\p{L}\p{N}\p{M}])$")
_UNSPACED_LETTER = re2.compile(rf"^[{_UNSPACED}]$")


def _wants_edge(char: str) -> bool:
    return _SPACED_LETTER.search(char) is not None and _UNSPACED_LETTER.search(char) is None


def _check_text(text: str) -> None:
    if not text.strip():
        raise BadInput("Give the text to look for.")
    if len(text) > TEXT_AT_MOST:
        raise BadInput(f"The text to look for is longer than {TEXT_AT_MOST} characters.")
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise BadInput("The text to look for holds characters that no message can hold.")
