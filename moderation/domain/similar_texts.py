"""Groups of texts that are the same or nearly the same, however raids vary them.

A text is reduced to what is left when case, accents, digits, punctuation, invisible characters, repeated letters and
whom it mentions are ignored. Reduced texts that are equal, or that share most of their groups of three characters,
are alike. Groups of characters instead of words also work for scripts without spaces.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Iterable

MIN_CHARACTERS = 10
"""Shorter reduced texts, such as "gg" or "good game", are repeated in every conversation."""

MIN_OVERLAP = 0.6
"""Share of the groups of three characters (Jaccard index) from which texts are alike: "free coins at" followed by two
different words still is, two sentences about the same subject are not.
"""

MAX_COMPARED = 100
"""Groups that a text is compared with: those that were found last. Limits 2,000 different texts to a second."""

MAX_CHARACTERS = 120
"""Only the beginning of a longer text is compared."""

_MENTION = re.compile(r"<(?:@[!&]?|#|a?:\w+:)\d+>")
_IGNORED = re.compile(r"[\W\d_]+")
_REPEATED = re.compile(r"(.)\1+")

Group = tuple[str, ...]
"""Texts that are alike, as they were written, the most frequent first."""


def reduce_text(text: str) -> str:
    """Return what is compared of a text; "" if too little is left."""
    bare = unicodedata.normalize("NFKD", _MENTION.sub(" ", text[: 4 * MAX_CHARACTERS])).casefold()
    if not bare.isascii():
        bare = "".join(char for char in bare if not unicodedata.combining(char))
    reduced = _REPEATED.sub(r"\1", _IGNORED.sub("", bare))[:MAX_CHARACTERS]
    return reduced if len(reduced) >= MIN_CHARACTERS else ""


def group_texts(texts: Iterable[str]) -> list[Group]:
    """Return the groups of texts that are alike, the largest first; texts that are too short are left out."""
    written: dict[str, Counter[str]] = {}
    for text, count in Counter(texts).items():
        if reduced := reduce_text(text):
            written.setdefault(reduced, Counter())[text] += count
    groups: deque[tuple[frozenset[str], Counter[str]]] = deque()
    for reduced, counts in written.items():
        parts = _split(reduced)
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


def _split(reduced: str) -> frozenset[str]:
    return frozenset(reduced[start : start + 3] for start in range(len(reduced) - 2))


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    fewer, more = (len(one), len(other)) if len(one) < len(other) else (len(other), len(one))
    if fewer < MIN_OVERLAP * more:
        return False
    shared = len(one & other)
    return shared >= MIN_OVERLAP * (fewer + more - shared)
