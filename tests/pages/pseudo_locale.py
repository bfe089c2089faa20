"""A generated pseudo-locale: it puts every translated string in brackets, so text without them was never wrapped."""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser

from django.test import override_settings
from django.utils.translation import trans_real

LANGUAGE = "en-xa"
OPEN, CLOSE = "⟦", "⟧"

# Elements whose text is data (names, IDs, code, messages, recorded errors), and elements that are never shown.
DATA_ELEMENTS = frozenset({"bdi", "code", "pre", "script", "style", "textarea"})
DATA_CLASSES = frozenset({"mono", "text", "avatar", "guild-icon", "emoji", "who-name"})
DATA_IDS = frozenset({"id_time_zone", "zones", "guild"})
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
SHOWN_ATTRIBUTES = frozenset({"alt", "aria-label", "placeholder", "title"})

_BRACKETED = re.compile(f"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}")
_WORD = re.compile(r"[^\W\d_]{2,}")


class PseudoTranslations(gettext.NullTranslations):
    """Translates every string to itself in brackets."""

    def language(self) -> str:
        return LANGUAGE

    def to_language(self) -> str:
        return LANGUAGE

    def gettext(self, message: str) -> str:
        text = message.rpartition(trans_real.CONTEXT_SEPARATOR)[2]
        return f"{OPEN}{text}{CLOSE}" if text.strip() else text

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)


@contextmanager
def pseudo_locale() -> Iterator[None]:
    """Make the pseudo-locale the only language."""
    with override_settings(LANGUAGES=[(LANGUAGE, f"{OPEN}Pseudo{CLOSE}")], LANGUAGE_CODE=LANGUAGE):
        # Changed languages clear all translations, here and at the end.
        trans_real._translations[LANGUAGE] = PseudoTranslations()  # type: ignore[attr-defined]
        yield


def untranslated(html: str, *, data: frozenset[str] = frozenset()) -> list[str]:
    """Return the visible texts with words that were not translated. data: names that may appear anywhere."""
    return [text for text in visible_texts(html) if _has_words(text, data)]


def visible_texts(html: str) -> list[str]:
    """Return the texts outside brackets that a person sees or hears, without data."""
    page = _Page()
    page.feed(html)
    return page.found


def _has_words(text: str, data: frozenset[str]) -> bool:
    for name in sorted(data, key=len, reverse=True):
        text = text.replace(name, " ")
    return _WORD.search(text) is not None


class _Page(HTMLParser):
    """Collects what is shown outside brackets. They may open in one element and close in another."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._depth = 0
        self._inside: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if not self._is_data:
            shown = [value for name, value in values.items() if name in SHOWN_ATTRIBUTES]
            self.found += [left for value in shown if (left := _strip_brackets(value).strip())]
        is_data = (
            tag in DATA_ELEMENTS
            or values.get("id") in DATA_IDS
            or not DATA_CLASSES.isdisjoint(values.get("class", "").split())
        )
        if tag not in VOID:
            self._inside.append((tag, is_data or self._is_data))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._inside:
            closed, _ = self._inside.pop()
            if closed == tag:
                return

    def handle_data(self, data: str) -> None:
        outside = ""
        for character in data:
            if character == OPEN:
                self._depth += 1
            elif character == CLOSE:
                self._depth -= 1
            elif not self._depth:
                outside += character
        if not self._is_data and outside.strip():
            self.found.append(" ".join(outside.split()))

    @property
    def _is_data(self) -> bool:
        return bool(self._inside) and self._inside[-1][1]


def _strip_brackets(text: str) -> str:
    """Drop bracketed parts, the innermost first."""
    before = ""
    while text != before:
        before, text = text, _BRACKETED.sub("", text)
    return text
