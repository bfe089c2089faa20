"""Texts that are the same or nearly the same, however the accounts of a raid vary them.

Of a text is compared what is left when case, accents, styles of letters, digits, punctuation, whitespace, invisible
characters, emoji, mentions and repeated letters are ignored: its letters. Texts are alike if these are equal, or share
most of their groups of three. Groups of letters instead of words also work for scripts without spaces.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Callable, Iterable

MAX_TEXT_CHARACTERS = 4_000
"""Only the beginning of a text is read. Discord allows no more."""

MAX_LETTERS = 120
"""Letters of a text that are compared, the first ones: what follows is often made up to differ."""

MIN_LETTERS = 10
"""Texts with fewer, such as "gg" or "good game", are repeated in every conversation: they are alike only if their
letters are equal, and are in no group.
"""

MIN_OVERLAP = 0.6
"""Share of the groups of three letters (Jaccard index) from which texts are alike: "free coins at" followed by two
different words still is, two sentences about the same subject are not.
"""

MAX_COMPARED = 100
"""Groups that a text is compared with: those that were found last. Limits 2,000 different texts to a second."""

_MENTION = re.compile(r"<(?:@[!&]?|#|a?:\w{1,64}:)\d{1,20}>")
_NO_LETTERS = re.compile(r"[\W\d_]+")
_REPEATED = re.compile(r"(.)\1+", re.DOTALL)

Group = tuple[str, ...]
"""Texts that are alike, as they were written, the most frequent first."""


def letters_of(text: str) -> str:
    """Return what is compared of a text; "" only for an empty text.

    A text without letters is compared by its digits and symbols. Takes linear time for any text.
    """
    beginning = text[:MAX_TEXT_CHARACTERS]
    plain = _MENTION.sub(" ", beginning)
    if not plain.isascii():
        # Long runs of combining marks would take quadratic time to normalize.
        plain = "".join(char for char in plain if not unicodedata.combining(char))
        plain = unicodedata.normalize("NFKD", plain)[:MAX_TEXT_CHARACTERS]
    letters = _NO_LETTERS.sub("", plain.casefold()) or "".join(beginning.split()) or beginning[:1]
    return _REPEATED.sub(r"\1", letters)[:MAX_LETTERS]


def compare_with(text: str) -> Callable[[str], bool]:
    """Return a test whether a text is alike this one."""
    letters = letters_of(text)
    parts = _split(letters)

    def is_alike(other: str) -> bool:
        found = letters_of(other)
        if found == letters:
            return True
        # Most texts are too short: a text has at most two groups of three fewer than letters.
        enough = min(len(letters), len(found)) >= MIN_LETTERS and len(found) - 2 >= MIN_OVERLAP * len(parts)
        return enough and _is_alike(parts, _split(found))

    return is_alike


def group_texts(texts: Iterable[str]) -> list[Group]:
    """Return the groups of texts that are alike, the largest first; texts that are too short are left out."""
    written: dict[str, Counter[str]] = {}
    for text, count in Counter(texts).items():
        if len(letters := letters_of(text)) >= MIN_LETTERS:
            written.setdefault(letters, Counter())[text] += count
    groups: deque[tuple[frozenset[str], Counter[str]]] = deque()
    for letters, counts in written.items():
        parts = _split(letters)
        last_found = enumerate(itertools.islice(groups, MAX_COMPARED))
        place = next((place for place, (known, _) in last_found if _is_alike(parts, known)), None)
        if place is None:
            groups.appendleft((parts, counts))
        else:
            known, found = groups[place]
            del groups[place]
            found.update(counts)
            groups.appendleft((known, found))
    by_size = sorted((counts for _, counts in groups), key=lambda counts: -counts.total())
    return [tuple(text for text, _ in counts.most_common()) for counts in by_size]


def _split(letters: str) -> frozenset[str]:
    return frozenset(letters[start : start + 3] for start in range(len(letters) - 2))


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    fewer, more = (len(one), len(other)) if len(one) < len(other) else (len(other), len(one))
    if fewer < MIN_OVERLAP * more:
        return False
    shared = len(one & other)
    return shared >= MIN_OVERLAP * (fewer + more - shared)
