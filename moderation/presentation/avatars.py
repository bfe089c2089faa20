"""Avatars of those who have no picture: initials, and a color that is the same on every page."""

from __future__ import annotations

from functools import lru_cache

TONES = 8
"""Colors of avatars; the stylesheet has as many."""

_SCATTER = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: neighbouring ids land far apart (Knuth's multiplicative hash)."""


def tone_of(snowflake: int) -> int:
    """Return the number of a color. The id is hashed, since its low bits are mostly 0."""
    return (snowflake * _SCATTER >> 40) % TONES


@lru_cache(maxsize=1024)
def initials_of(name: str) -> str:
    """Return the first letters of the first two words: "Tide Walkers" → "TW"; "?" without letters and digits."""
    firsts = [next((c.upper()[0] for c in word if c.isalnum()), "") for word in name.split()[:8]]
    return "".join(firsts)[:2] or "?"
